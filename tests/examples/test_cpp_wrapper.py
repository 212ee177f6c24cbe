"""csrc/include/relvm.hpp: spans, views and the real-time mode in a C++17 program that pkg-config compiles."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

import relvm._native
from relvm import vm
from relvm.frontend.text import parse_module

PKG_CONFIG = Path(relvm._native.__file__).resolve().parent / "lib" / "pkgconfig"
PROGRAM = """
#include <relvm.hpp>

#include <array>
#include <iostream>

int main(int, char **arguments) try {
  relvm::Model model(relvm::Executable(arguments[1], /*trust_native=*/false));
  std::array<float, 3> elements{-1, 2, 3};
  const relvm::Tensor x = relvm::Tensor::view({3}, relvm::Span<float>(elements));
  for (float element : model.run({x}).at(0).span<float>()) std::cout << element << ' ';
  elements[0] = 5;  // the tensor is a view
  model.real_time();
  relvm::Value result;
  const std::array<rvm_value, 1> inputs{x.value().get()};
  for (int run = 0; run < 3; run++)
    if (model.call(relvm::Span<const rvm_value>(inputs), result) != RVM_OK) return 1;
  std::cout << relvm::Tensor(result).span<float>()[0] << '\\n';
  const std::vector<float> two(2);
  try {
    relvm::Tensor::view({3}, relvm::Span<float>(elements.data(), 2));
  } catch (const relvm::Error &error) {
    std::cout << error.what() << '\\n';
  }
  try {
    relvm::Tensor(x).span<double>();
  } catch (const relvm::Error &error) {
    std::cout << error.what() << '\\n';
  }
  return relvm::Span<const float>(two).size() == 2 && !relvm::Span<const float>(two).empty() ? 0 : 1;
} catch (const relvm::Error &error) {
  std::cerr << error.what() << '\\n';
  return 1;
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
@pytest.mark.skipif(shutil.which("pkg-config") is None, reason="no pkg-config")
@pytest.mark.skipif(not (PKG_CONFIG / "relvm.pc").exists(), reason="relvm was built without the static library")
def test_a_program_uses_spans_and_the_real_time_mode(tmp_path: Path) -> None:
    (tmp_path / "program.cpp").write_text(PROGRAM)
    vm.build(parse_module("def main(x: f32[n]) -> f32[n] = relu(x)"), target="bytecode").save(tmp_path / "model.rvm")
    command = ["pkg-config", "--cflags", "--libs", "relvm"]
    environment = {"PKG_CONFIG_PATH": str(PKG_CONFIG), "PATH": "/usr/bin:/bin"}
    flags = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.split()
    options = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsanitize=address,undefined"]
    subprocess.run(["g++", *options, "program.cpp", *flags, "-o", "program"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "program", tmp_path / "model.rvm"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "0 2 3 5",
        "tensor: expected 3 elements for its shape, got 2",
        "tensor: its elements have another type",
    ]
