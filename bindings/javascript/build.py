"""Build the npm package: `python bindings/javascript/build.py [FOLDER]`, then `npm publish FOLDER`.

It needs an installed relvm, and zig cc (`pip install ziglang`).  The version is that of the Python package.
"""

from __future__ import annotations

import argparse
import json
import shutil
from importlib.metadata import version
from pathlib import Path

from relvm.compiler.webassembly import runtime_module, runtime_program
from relvm.tables import csrc_directory

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PROGRAM = ROOT / "examples" / "c" / "relvm_npy.c"


def build_package(folder: Path) -> None:
    """Write the npm package to a folder, which is created if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "relvm.wasm").write_bytes(runtime_module())
    for name in ("relvm.js", "relvm.d.ts"):
        shutil.copy(csrc_directory() / "webassembly" / name, folder)
    shutil.copy(HERE / "README.md", folder)
    shutil.copy(ROOT / "LICENSE", folder)
    description = json.loads((HERE / "package.json").read_text()) | {"version": version("relvm")}
    (folder / "package.json").write_text(json.dumps(description, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the npm package.")
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "dist")
    parser.add_argument("--wasi", type=Path, metavar="FILE", help="also write the command relvm_npy.wasm for wasmtime")
    options = parser.parse_args()
    build_package(options.folder)
    print(f"wrote {options.folder}: relvm.wasm has {(options.folder / 'relvm.wasm').stat().st_size:,} bytes")
    if options.wasi:
        options.wasi.write_bytes(runtime_program(PROGRAM))
        print(f"wrote {options.wasi}, {options.wasi.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
