"""Cache keys of modules that are imported from files (relvm/ir/cache_key.py).

A key identifies the file and the import options.  It also contains the version of the onnx package, because this
package defines some operators as functions of others.  The key is computed without reading the graph and, normally,
without importing the onnx package.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping, Sequence
from importlib.util import find_spec
from types import MappingProxyType


def onnx_cache_key(
    digest: str,
    dims: Mapping[str, object],
    inputs: Collection[str] = (),
    outputs: Sequence[str] | None = None,
    ranks: Mapping[str, int] = MappingProxyType({}),
) -> str:
    """Return the cache key of a module that `from_onnx` imports without weights.

    Parameters
    ----------
    digest
        The digest of the model (`relvm.frontend.onnx_bytes.OnnxSource`).
    dims, inputs, outputs, ranks
        The arguments of `from_onnx`.
    """
    return f"{_onnx_version()} {digest} {sorted(dims.items())} {sorted(inputs)} {outputs} {sorted(ranks.items())}"


@functools.cache
def _onnx_version() -> str:
    """Return a string that changes with the version of the installed onnx package."""
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        return "onnx"
    names = os.listdir(os.path.dirname(os.path.dirname(spec.origin)))  # Path.glob would be slow
    found = [name for name in names if name.startswith("onnx-") and name.endswith(".dist-info")]
    if len(found) == 1:
        return found[0]
    import onnx

    return f"onnx-{onnx.__version__}"
