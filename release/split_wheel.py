"""Split the wheel of a build into the wheels of relvm-runtime and relvm.

A build of the sources gives one wheel, which is complete.  The distribution relvm-runtime has the part of it that runs
compiled models, and requires NumPy and cffi only.  The distribution relvm has the rest, and requires relvm-runtime of
the same version.  Both install their files in the same folders, and have no file in common.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path

from relvm.compiler.build_cache import SOURCES_DIGEST, digest_of_rows, is_source
from relvm.installation import record_file, record_row

# The files and folders of relvm-runtime.  Modules of these files import other modules only in functions.
RUNTIME_FILES = (
    "relvm/__init__.py",
    "relvm/_binding.pyi",
    "relvm/_native.abi3.so",
    "relvm/_native.pyd",
    "relvm/_native.pyi",
    "relvm/bytecode/",
    "relvm/compiler/__init__.py",
    "relvm/compiler/adapt.py",
    "relvm/compiler/build_cache.py",
    "relvm/compiler/build_model.py",
    "relvm/compiler/disk_cache.py",
    "relvm/compiler/find_compiler.py",
    "relvm/compiler/garbage_collection.py",
    "relvm/compiler/upgrade.py",
    "relvm/csrc/include/relvm.h",
    "relvm/csrc/tables/",
    "relvm/data_classes.py",
    "relvm/display.py",
    "relvm/errors.py",
    "relvm/frontend/__init__.py",
    "relvm/frontend/model_cache_key.py",
    "relvm/frontend/onnx_bytes.py",
    "relvm/frontend/onnx_element_types.py",
    "relvm/frontend/onnx_info.py",
    "relvm/frontend/onnx_messages.py",
    "relvm/frontend/stablehlo_file.py",
    "relvm/frontend/torch_file.py",
    "relvm/installation.py",
    "relvm/model.py",
    "relvm/numpy_dtypes.py",
    "relvm/onnxruntime/",
    "relvm/py.typed",
    "relvm/quoting.py",
    "relvm/runtime/",
    "relvm/system/",
    "relvm/tables.py",
    "relvm/vm.py",
)
_RUNTIME = "relvm-runtime"
_SUMMARY = "Runs models that relvm has compiled: the virtual machine, without the compiler"
_DESCRIPTION = """\
# relvm-runtime

The part of relvm that runs compiled models.  It requires NumPy and cffi only.

    import relvm

    model = relvm.load_model("model.rvm")
    y = model(x)

`pip install relvm` adds the compiler.
"""


def split_wheel(wheel: Path, folder: Path) -> tuple[Path, Path]:
    """Write the wheels of relvm-runtime and relvm to a folder, and return their paths.

    Parameters
    ----------
    wheel
        The wheel of a build, which contains everything.
    folder
        The folder for the two wheels, which must exist and must not contain `wheel`.
    """
    with zipfile.ZipFile(wheel) as archive:
        members = {member.filename: member for member in archive.infolist() if not member.is_dir()}
        files = {name: archive.read(name) for name in members}
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    information = record.rpartition("/")[0]
    metadata = message_from_bytes(files[f"{information}/METADATA"])
    version, platform = metadata["Version"], wheel.stem.rpartition("-")[2]

    def write(name: str, tag: str, contents: Mapping[str, bytes]) -> Path:
        contents = {_renamed(path, name): content for path, content in contents.items()}
        own = f"{name.replace('-', '_')}-{version}.dist-info"
        contents[f"{own}/WHEEL"] = _wheel_file(contents[f"{own}/WHEEL"], tag)
        bill = f"{own}/sboms/{name}.cdx.json"
        contents[bill] = _bill_of_materials(contents[bill], name)
        contents[f"{own}/RECORD"] = record_file(contents, f"{own}/RECORD")
        path = folder / f"{own.removesuffix('.dist-info')}-{tag}.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for inside in sorted(contents):
                member = zipfile.ZipInfo(inside, members[record].date_time)
                source = members.get(inside, members[record])
                member.external_attr, member.compress_type = source.external_attr, zipfile.ZIP_DEFLATED
                archive.writestr(member, contents[inside])
        return path

    both = {name: files[name] for name in files if name.startswith(f"{information}/") and name != record}
    runtime = {name: files[name] for name in files if name.startswith(RUNTIME_FILES)} | both
    del runtime[f"{information}/entry_points.txt"]
    runtime[f"{information}/METADATA"] = _runtime_metadata(metadata)
    runtime[f"relvm/{SOURCES_DIGEST}"] = digest_of_rows(_rows(files)).encode()
    compiler = {name: files[name] for name in files if not name.startswith(RUNTIME_FILES)}
    del compiler[record]
    compiler[f"{information}/METADATA"] = _compiler_metadata(metadata)
    tag = wheel.stem.split("-", 2)[2]
    return write(_RUNTIME, tag, runtime), write("relvm", f"py3-none-{platform}", compiler)


def _renamed(path: str, name: str) -> str:
    """Return a path in a wheel of relvm as a path in the wheel of distribution `name`."""
    folder, slash, rest = path.partition("/")
    if not folder.endswith(".dist-info"):
        return path
    rest = rest.replace("sboms/relvm.", f"sboms/{name}.")
    return f"{folder.replace('relvm-', name.replace('-', '_') + '-', 1)}{slash}{rest}"


def _runtime_metadata(metadata: Message) -> bytes:
    names = ("Metadata-Version", "Version", "License-Expression", "License-File", "Requires-Python")
    headers = [("Name", _RUNTIME), ("Summary", _SUMMARY), *((name, metadata[name]) for name in names)]
    needed = [text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text]
    headers += [("Requires-Dist", text) for text in needed if not text.startswith("ml_dtypes")]
    headers += [("Provides-Extra", "dtypes"), ("Requires-Dist", 'ml_dtypes; extra == "dtypes"')]
    headers.append(("Description-Content-Type", "text/markdown"))
    headers.sort(key=lambda header: header[0] != "Metadata-Version")  # which is the first one
    return _message(headers, _DESCRIPTION)


def _compiler_metadata(metadata: Message) -> bytes:
    headers = list(metadata.items())
    position = next(i for i, (name, _) in enumerate(headers) if name == "Requires-Dist")
    headers.insert(position, ("Requires-Dist", f"{_RUNTIME}=={metadata['Version']}"))
    return _message(headers, metadata.get_payload())


def _message(headers: Iterable[tuple[str, str]], body: str) -> bytes:
    return ("".join(f"{name}: {value}\n" for name, value in headers) + "\n" + body).encode()


def _wheel_file(content: bytes, tag: str) -> bytes:
    lines = [line for line in content.decode().splitlines() if line and not line.startswith("Tag:")]
    return "\n".join([*lines, f"Tag: {tag}", ""]).encode()


def _bill_of_materials(content: bytes, name: str) -> bytes:
    bill = json.loads(content)
    component = bill["metadata"]["component"]
    component["purl"] = component["purl"].replace("/relvm@", f"/{name}@")
    component["name"] = component["bom-ref"] = name
    for dependency in bill["dependencies"]:
        dependency["ref"] = name if dependency["ref"] == "relvm" else dependency["ref"]
    return json.dumps(bill, indent=2).encode() + b"\n"


def _rows(files: Mapping[str, bytes]) -> Iterable[bytes]:
    """Return the rows of the files on which a build depends, as in RECORD."""
    return (record_row(path, files[path]) for path in files if path.startswith("relvm/") and is_source(path))
