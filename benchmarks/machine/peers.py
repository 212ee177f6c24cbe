"""The same recursion and the same counting loop in other languages, each measured in a separate process.

Each program prints two medians: the nanoseconds of a call in fib(N), and of an iteration of the loop.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine.programs import FIB, FIB_CALLS, ROUNDS
from benchmarks.machine.timing import REPEATS

_LUA = """
local clock, sort = os.clock, table.sort
local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end
local function count(n) local s, i = 0, 0 while i < n do s = s + i i = i + 1 end return s end
local function median(run, per)
  local times = {}
  for k = 1, %(repeats)d do local t = clock() run() times[k] = (clock() - t) / per * 1e9 end
  sort(times)
  return times[%(repeats)d // 2 + 1]
end
print(median(function() fib(%(fib)d) end, %(calls)d), median(function() count(%(rounds)d) end, %(rounds)d))
"""

_PYTHON = """
import statistics, time
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
def count(n):
    s = i = 0
    while i < n:
        s += i
        i += 1
def median(run, per):
    times = []
    for _ in range(%(repeats)d):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) / per * 1e9)
    return statistics.median(times)
print(median(lambda: fib(%(fib)d), %(calls)d), median(lambda: count(%(rounds)d), %(rounds)d))
"""

_C = """
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) static int64_t fib(int64_t n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
static volatile int64_t sink;
__attribute__((noinline)) static int64_t count(int64_t n) {
  int64_t s = 0;
  for (int64_t i = 0; i < n; i++) { s += i; __asm__ volatile("" : "+r"(s)); }
  return s;
}
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static int ascending(const void *a, const void *b) { return *(double *)a < *(double *)b ? -1 : 1; }
static double median(int64_t (*run)(int64_t), int64_t argument, double per) {
  double times[%(repeats)d];
  for (int k = 0; k < %(repeats)d; k++) {
    double started = now();
    sink = run(argument);
    times[k] = (now() - started) / per;
  }
  qsort(times, %(repeats)d, sizeof *times, ascending);
  return times[%(repeats)d / 2];
}
int main(void) { printf("%%f %%f\\n", median(fib, %(fib)d, %(calls)d), median(count, %(rounds)d, %(rounds)d)); return 0;
}
"""


@dataclass(frozen=True)
class Peer:
    """The results of a language.  fib, count: the nanoseconds of a call and of an iteration."""

    name: str
    fib: float
    count: float


def measure_peers() -> list[Peer]:
    """Measure the languages that are installed.  C is compiled by gcc with -O2 -fno-inline."""
    values = {"fib": FIB, "calls": FIB_CALLS, "rounds": ROUNDS, "repeats": REPEATS}
    lua = _LUA % values
    peers = []
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "peer.lua")
        commands = {"CPython": [sys.executable, "-c", _PYTHON % values]}
        if shutil.which("lua5.4"):
            source.write_text(lua)
            commands["Lua 5.4"] = ["lua5.4", str(source)]
        if shutil.which("luajit"):
            jit = Path(folder, "jit.lua")
            jit.write_text(lua.replace("// 2", "/ 2 - 0.5"))
            commands["LuaJIT"] = ["luajit", str(jit)]
            commands["LuaJIT interpreter"] = ["luajit", "-joff", str(jit)]
        if shutil.which("gcc"):
            Path(folder, "peer.c").write_text(_C % values)
            flags = ["-O2", "-fno-inline", "-fno-ipa-cp", "-fno-optimize-sibling-calls"]
            subprocess.run(["gcc", *flags, "peer.c", "-o", "peer"], cwd=folder, check=True)
            commands["C, gcc -O2"] = [str(Path(folder, "peer"))]
        for name, command in commands.items():
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peers.append(Peer(name, *map(float, done.stdout.split())))
    return peers


def measure_tvm() -> dict[str, list[float]]:
    """Return the nanoseconds of each row in both modes of TVM's Relax VM, or {} if apache-tvm is not installed.

    RELVM_TVM_PYTHON is the Python interpreter to use.  The default is this interpreter.
    """
    python = os.environ.get("RELVM_TVM_PYTHON", sys.executable)
    if subprocess.run([python, "-c", "import tvm"], capture_output=True).returncode:
        return {}
    script = str(Path(__file__).with_name("tvm_peer.py"))
    done = subprocess.run([python, script], capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])
