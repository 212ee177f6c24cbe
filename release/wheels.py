"""Build the distributions of a release: an sdist, and the wheels of relvm-runtime and relvm for each platform.

    pip install '.[release]'
    python -m release.wheels -o dist

The wheels are built from the sdist.  zig cc compiles for every platform on one machine, and links against the C library
that the name of the platform states.  The headers of Python are those of the Python that runs this command.  Only their
pyconfig.h depends on the system, so `release/python/pyconfig.h` replaces it.

The sdist builds one complete wheel, which is split in two (release/split_wheel.py).

Two builds of the same sources with the same versions of the tools have the same bytes.  After each build, auditwheel
checks that a wheel for Linux needs nothing but the C library of its platform.  abi3audit checks that a wheel uses
only the limited API of Python 3.11.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import pefile
from abi3info import DATAS, FUNCTIONS
from abi3info.models import PyVersion

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from build_backend import write_zig_tools  # noqa: E402
from release.split_wheel import split_wheel  # noqa: E402


@dataclass(frozen=True)
class Platform:
    """A system that wheels are built for.

    tag: its name in the names of wheels.   target: its name in zig.
    """

    tag: str
    target: str

    @property
    def processor(self) -> str:
        return self.target.split("-")[0]

    @property
    def system(self) -> str:
        """The name of the system in CMake."""
        return _SYSTEMS[self.target.split("-")[1].partition(".")[0]]


_SYSTEMS = {"linux": "Linux", "macos": "Darwin", "windows": "Windows"}
# The libraries of Windows that a wheel may use, besides the C library (api-ms-win-crt-...).
_OF_WINDOWS = {"kernel32.dll", "python3.dll"}


PLATFORMS = (
    Platform("manylinux_2_17_x86_64", "x86_64-linux-gnu.2.17"),
    Platform("manylinux_2_17_aarch64", "aarch64-linux-gnu.2.17"),
    Platform("musllinux_1_2_x86_64", "x86_64-linux-musl"),
    Platform("musllinux_1_2_aarch64", "aarch64-linux-musl"),
    Platform("macosx_11_0_arm64", "aarch64-macos.11.0"),
    Platform("macosx_10_13_x86_64", "x86_64-macos.10.13"),
    Platform("win_amd64", "x86_64-windows-gnu"),
)
_PYTHON_TAG = "cp311-abi3"
_BUILD_VARIABLES = ("CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "CMAKE_ARGS", "CMAKE_GENERATOR")  # a build ignores them


class ReleaseError(Exception):
    """A distribution does not build, or does not pass a check."""


def build_sdist(folder: Path, root: Path = ROOT) -> Path:
    """Build the sdist of the sources in `root`, and return its path in `folder`.

    It contains all files except those that .gitignore lists.
    """
    return _build("--sdist", folder, root)


def build_wheels(sdist: Path, platform: Platform, folder: Path) -> tuple[Path, Path]:
    """Build the wheels of relvm-runtime and relvm for a platform, check them, and return their paths in `folder`.

    Raises
    ------
    ReleaseError
        The build fails, or a wheel does not pass a check.
    """
    with tempfile.TemporaryDirectory(prefix="relvm-wheel-") as temporary:
        work = Path(temporary)
        with tarfile.open(sdist) as archive:
            archive.extractall(work, filter="data")
        (source,) = work.iterdir()
        headers = _python_headers(work / "python")
        (tools := work / "tools").mkdir()
        compiler = write_zig_tools(tools, "-target", platform.target, f"-ffile-prefix-map={work}=.")
        settings = {
            "wheel.tags": f"{_PYTHON_TAG}-{platform.tag}",
            "cmake.define.CMAKE_SYSTEM_NAME": platform.system,
            "cmake.define.CMAKE_SYSTEM_PROCESSOR": platform.processor,
            "cmake.define.CMAKE_C_COMPILER": str(compiler),
            "cmake.define.Python_INCLUDE_DIR": str(headers),
            "cmake.define.RELVM_COMPILER": f"zig {version('ziglang')}",
        }
        if platform.system == "Windows":
            settings["cmake.define.Python_SABI_LIBRARY"] = str(_import_library(work))
        if platform.system == "Darwin":
            settings["cmake.define.CMAKE_MODULE_LINKER_FLAGS"] = "-shared"  # zig cc has no -bundle
        folder.mkdir(parents=True, exist_ok=True)
        wheels = split_wheel(_build("--wheel", work / "wheel", source, settings), folder)
        check_wheel(wheels[0], platform)  # the other one contains no extension module
        return wheels


def check_wheel(wheel: Path, platform: Platform) -> None:
    """Check a wheel with abi3audit, and with auditwheel if it is for Linux.

    Raises
    ------
    ReleaseError
        The wheel needs a newer system than its platform, other libraries, or functions outside the limited API.
    """
    if platform.system == "Linux":
        _check_libraries(wheel, platform)
    if platform.system == "Windows" and (others := sorted(_imported_libraries(wheel) - _OF_WINDOWS)):
        raise ReleaseError(f"{wheel.name}: the extension module needs {', '.join(others)}")
    _run("abi3audit", "--strict", str(wheel))


def _check_libraries(wheel: Path, platform: Platform) -> None:
    # Without a folder of libraries, because those of this system are not those of the platform.
    found = json.loads(_run("auditwheel", "show", "--json", "--ldpaths", os.devnull, str(wheel)))
    # musl's dynamic linker accepts the name libc.so for itself, but auditwheel knows only libc.musl-x86_64.so.1.
    needs_musl_only = platform.target.endswith("-musl") and set(found["external_libs"]) == {"libc.so"}
    tag = found["sym_tag" if needs_musl_only else "overall_tag"]
    if tag != platform.tag:
        raise ReleaseError(f"{wheel.name}: expected a wheel for {platform.tag}, but auditwheel finds {found}")


def _imported_libraries(wheel: Path) -> set[str]:
    """Return the DLLs that the extension module of a wheel uses, except those of the C library, in lower case."""
    with zipfile.ZipFile(wheel) as archive:
        module = pefile.PE(data=archive.read("relvm/_native.pyd"))
    names = {entry.dll.decode().lower() for entry in module.DIRECTORY_ENTRY_IMPORT}
    return {name for name in names if not name.startswith("api-ms-win-crt-")}


def _import_library(folder: Path) -> Path:
    """Write an import library of python3.dll, which exports the limited API, and return its path."""
    newest = PyVersion(3, 11)
    exports = [f"  {symbol.name}" for symbol, row in FUNCTIONS.items() if row.added <= newest]
    exports += [f"  {symbol.name} DATA" for symbol, row in DATAS.items() if row.added <= newest]
    (folder / "python3.def").write_text("LIBRARY python3.dll\nEXPORTS\n" + "\n".join(sorted(exports)) + "\n")
    path = folder / "python3.lib"
    options = ("-m", "i386:x86-64", "-d", str(folder / "python3.def"), "-l", str(path))
    _run(sys.executable, "-m", "ziglang", "dlltool", *options)
    return path


def _python_headers(folder: Path) -> Path:
    """Copy the headers of this Python to `folder`, with release/python/pyconfig.h."""
    ignored = shutil.ignore_patterns("internal")
    shutil.copytree(sysconfig.get_path("include"), folder, ignore=ignored)
    shutil.copy(ROOT / "release" / "python" / "pyconfig.h", folder)
    return folder


def _build(kind: str, folder: Path, source: Path, settings: dict[str, str] | None = None) -> Path:
    """Run the build backend of `source`.   kind: "--sdist" or "--wheel".   settings: for scikit-build-core."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        options = [f"-C{name}={value}" for name, value in (settings or {}).items()]
        _run(sys.executable, "-m", "build", kind, "--no-isolation", "--outdir", made, *options, str(source))
        (path,) = Path(made).iterdir()
        return path.replace(folder / path.name)


def _run(*command: str) -> str:
    """Run a command of this environment and return its output.  Raise ReleaseError if it fails."""
    scripts = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": os.pathsep.join((scripts, os.environ.get("PATH", os.defpath)))}
    for name in _BUILD_VARIABLES:
        environment.pop(name, None)
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise ReleaseError(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> int:
    """Build the distributions, and print their sizes and digests."""
    parser = argparse.ArgumentParser(prog="python -m release.wheels", description="Build an sdist and wheels.")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FOLDER", help="folder for the files")
    tags = [platform.tag for platform in PLATFORMS]
    parser.add_argument("--platform", action="append", choices=tags, help="build only the wheels for this platform")
    options = parser.parse_args()
    try:
        sdist = build_sdist(options.output)
        _report(sdist)
        for platform in PLATFORMS:
            if not options.platform or platform.tag in options.platform:
                for wheel in build_wheels(sdist, platform, options.output):
                    _report(wheel)
    except ReleaseError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _report(path: Path) -> None:
    data = path.read_bytes()
    print(f"{hashlib.sha256(data).hexdigest()}  {path.name}  {len(data) / 1e6:.1f} MB", flush=True)


if __name__ == "__main__":
    sys.exit(main())
