"""The cases of ONNX's suite that relvm does not pass, and why; tests/frontend/onnx_backend.py runs them, too."""

EXCLUDED: dict[str, str] = {}
