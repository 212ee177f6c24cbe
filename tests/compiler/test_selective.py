"""Static libraries with a model and only what it uses of the runtime (relvm compile --selective)."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relvm import vm
from relvm.cli import main
from relvm.cli.config import _config_values
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.text import parse_module

NETWORK = """def main(x: f32[n, 8]) -> f32[n, 8] {
  w = reshape(relu(x), shape(8, n))
  return matmul(softmax(matmul(x, w), axis=1), tanh(x))
}"""
LOOP = """def main(x: f32[5, 8]) -> f32[5, 8] { return @loop(0, 1.5, x) }
private def loop(k: i64, s: f64, x: f32[5, 8]) -> f32[5, 8] with (inline=false) {
  return if k < 7 then {
    return if k % 3 == 2 then { return @loop(k + 1, s, negative(x)) }
           else { return @loop(k + 1, s * 0.5 - 1.0, add(x, to_tensor(s, dtype="f32"))) }
  } else { return x }
}"""
VALUES = """def main(x: f32[5, 8]) -> f32[5, 8] {
  g = fn(y: f32[5, 8]) = add(y, x)
  items = make_list(x, multiply(x, x))
  is_known = equal(const(str[2], ["ab", "c"]), const(str[2], ["ab", "d"]))
  return add(g(g(list_item(items, 1))), gather(cast(is_known, to="f32"), const(i64[], 0), axis=0))
}"""
CONVOLUTION = """def main(x: f32[5, 8]) -> f32[1, 5, 2, 4] {
  w = broadcast_to(const(f32[], 0.3), shape(5, 1, 3, 3))
  y = conv(reshape(x, shape(1, 5, 2, 4)), w, pads=(1, 1, 1, 1), groups=5)
  z = conv(y, broadcast_to(const(f32[], 0.7), shape(5, 5, 3, 3)), pads=(1, 1, 1, 1))
  return max_pool(z, kernel=(3, 3), pads=(1, 1, 1, 1))
}"""
PROGRAM = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "relvm.h"

static int failed(rvm_value error) {
  puts(error.as.error->message);
  return 1;
}

/* Without arguments, runs the model of the library and prints the bits of the result.  Else tries to load a file. */
int main(int count, char **texts) {
  rvm_executable *executable;
  rvm_machine *machine;
  rvm_value x, y, error;
  if (count == 1) {
    if (relvm_module_load(&executable, &error)) return failed(error);
  } else {
    static _Alignas(64) char bytes[1 << 20];
    FILE *file = fopen(texts[1], "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    if (rvm_executable_load(bytes, (int64_t)size, NULL, &executable, &error)) return failed(error);
  }
  if (rvm_machine_new(executable, NULL, &machine, &error)) return failed(error);
  const int64_t dims[2] = {5, 8};
  if (rvm_tensor_new(RVM_DTYPE_f32, 2, dims, &x)) return failed(x);
  for (int i = 0; i < 40; i++) ((float *)x.as.tensor->dl.data)[i] = (float)(i % 7 - 3);
  if (rvm_machine_call(machine, rvm_executable_find(executable, "main"), &x, 1, &y)) return failed(y);
  for (int64_t i = 0; i < rvm_tensor_size_bytes(y.as.tensor) / 4; i++) {
    uint32_t bits;
    memcpy(&bits, (char *)y.as.tensor->dl.data + 4 * i, 4);
    printf("%08x ", bits);
  }
  return 0;
}
"""
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="the program is linked by gcc")


def link(text: str, folder: Path) -> Path:
    """Compile a program with the selective library of a module."""
    (folder / "network.relvm").write_text(text)
    assert main(["compile", str(folder / "network.relvm"), "--selective", "-o", str(folder / "libnetwork.a")]) == 0
    (folder / "program.c").write_text(PROGRAM)
    flags = str(_config_values()["cflags"]).split()
    linked = ["libnetwork.a", "-Wl,--gc-sections", "-no-pie", "-lm", "-ldl", "-lpthread", "-o", "program"]
    subprocess.run(["gcc", "-Os", "-fno-pie", "program.c", *flags, *linked], cwd=folder, check=True)
    return folder / "program"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a program with the selective library of NETWORK."""
    return link(NETWORK, tmp_path_factory.mktemp("selective"))


def run(program: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def has_the_bits_of_the_whole_runtime(text: str, program: Path) -> bool:
    x = np.arange(40, dtype=np.float32).reshape(5, 8) % 7 - 3
    expected = vm.VirtualMachine(vm.build(parse_module(text), target="bytecode"))["main"](x).numpy()
    return run(program).stdout.split() == [f"{bits:08x}" for bits in expected.reshape(-1).view(np.uint32)]


@pytest.mark.parametrize("text", [NETWORK, LOOP, VALUES, CONVOLUTION], ids=["network", "loop", "values", "convolution"])
def test_the_results_have_the_bits_of_the_whole_runtime(text: str, tmp_path: Path) -> None:
    assert has_the_bits_of_the_whole_runtime(text, link(text, tmp_path))


@pytest.mark.skipif(not importlib.util.find_spec("ziglang"), reason="pip install ziglang")
def test_zig_makes_a_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELVM_CC", shlex.join([sys.executable, "-m", "ziglang", "cc"]))
    assert has_the_bits_of_the_whole_runtime(LOOP, link(LOOP, tmp_path))


def test_the_program_is_small(program: Path) -> None:
    """The same program with the complete runtime, built with CMake, has 631 kB."""
    shown = subprocess.run(["size", program], capture_output=True, text=True, check=True).stdout
    text, data, *_ = shown.splitlines()[1].split()
    assert int(text) + int(data) <= 62_000


def test_the_library_loads_only_its_own_executable(program: Path, tmp_path: Path) -> None:
    vm.build(parse_module(NETWORK), target="bytecode").save(tmp_path / "other.rvm")
    done = run(program, tmp_path / "other.rvm")
    assert (done.returncode, done.stdout) == (
        1,
        "rvm_executable_load: a selective library does not contain this function; link the whole runtime (librelvm)\n",
    )


def test_native_code_and_packed_functions_are_refused(tmp_path: Path) -> None:
    numpy_build = vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="numpy")
    with pytest.raises(RelvmUnsupportedError, match=r"no packed functions, but the program calls reference\."):
        vm.export_selective(numpy_build, tmp_path / "lib.a")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-o", "lib.a"], "--selective writes a static library"),
        (["-o", "m.rvm", "--selective"], "--selective writes a static library"),
        (["-o", "lib.a", "--selective", "--target", "c"], "such a library runs bytecode only"),
    ],
)
def test_options_that_contradict(
    options: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.relvm").write_text("def main(x: f32[n]) -> f32[n] = relu(x)")
    assert main(["compile", "m.relvm", *options]) == 1
    assert message in capsys.readouterr().err
