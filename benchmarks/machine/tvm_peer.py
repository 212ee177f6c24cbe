"""Measure the same rows in TVM's Relax VM.  This program does not import relvm:   python tvm_peer.py

It prints one line of JSON with the nanoseconds of each row in bytecode and compiled mode.  A row is a function of N
equal statements.  The time of an empty function is subtracted.  Written for apache-tvm 0.27.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np
import tvm
from tvm import relax
from tvm.script import from_source

REPEATS, STATEMENTS, RUNS = 9, 50, 2000

_MODULE = """
@I.ir_module
class Module:
    @T.prim_func
    def add(x: T.Buffer((1,), "float32"), y: T.Buffer((1,), "float32"), z: T.Buffer((1,), "float32")):
        for i in range(1):
            z[i] = x[i] + y[i]
    @T.prim_func
    def less_than_2(n: T.Buffer((), "int64"), out: T.Buffer((), "bool")):
        out[()] = n[()] < T.int64(2)
    @T.prim_func
    def is_positive(n: T.Buffer((), "int64"), out: T.Buffer((), "bool")):
        out[()] = n[()] > T.int64(0)
    @T.prim_func
    def minus_1(n: T.Buffer((), "int64"), out: T.Buffer((), "int64")):
        out[()] = n[()] - T.int64(1)
    @T.prim_func
    def minus_2(n: T.Buffer((), "int64"), out: T.Buffer((), "int64")):
        out[()] = n[()] - T.int64(2)
    @T.prim_func
    def plus(a: T.Buffer((), "int64"), b: T.Buffer((), "int64"), out: T.Buffer((), "int64")):
        out[()] = a[()] + b[()]
    @R.function
    def fib(n: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        c = R.call_tir(cls.less_than_2, (n,), out_ty=R.Tensor((), "bool"))
        if c:
            r = n
        else:
            a = R.call_tir(cls.minus_1, (n,), out_ty=R.Tensor((), "int64"))
            b = R.call_tir(cls.minus_2, (n,), out_ty=R.Tensor((), "int64"))
            x = cls.fib(a)
            y = cls.fib(b)
            r = R.call_tir(cls.plus, (x, y), out_ty=R.Tensor((), "int64"))
        return r
    @R.function
    def count(n: R.Tensor((), "int64"), s: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        c = R.call_tir(cls.is_positive, (n,), out_ty=R.Tensor((), "bool"))
        if c:
            a = R.call_tir(cls.minus_1, (n,), out_ty=R.Tensor((), "int64"))
            b = R.call_tir(cls.plus, (s, n), out_ty=R.Tensor((), "int64"))
            r = cls.count(a, b)
        else:
            r = s
        return r
    @R.function
    def carry(
        n: R.Tensor((), "int64"), p: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"))
    ) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        c = R.call_tir(cls.is_positive, (n,), out_ty=R.Tensor((), "bool"))
        if c:
            a = R.call_tir(cls.minus_1, (n,), out_ty=R.Tensor((), "int64"))
            q = (p[1], p[0])
            r = cls.carry(a, q)
        else:
            r = p
        return r
    @R.function(pure=False)
    def same(o: R.Object) -> R.Object:
        return o
    @R.function(pure=False)
    def second(a: R.Object, b: R.Object) -> R.Object:
        return a
    @R.function(pure=False)
    def main(
        o: R.Object, x: R.Tensor((1,), "float32"), t: R.Tuple(R.Object, R.Object), c: R.Tensor((), "bool")
    ) -> R.Object:
        cls = Module
        f = R.make_closure(cls.second, (o,))
{body}
        return o
"""

_ROWS = {
    "copy": ['y{k} = R.call_packed("vm.builtin.copy", o, ty_args=(R.Object,))'],
    "tuple_getitem": ['y{k} = R.call_packed("vm.builtin.tuple_getitem", t, R.prim_value(0), ty_args=(R.Object,))'],
    "kernel on 1 element": ["_{k} = cls.add(x, x, x)"],
    "function call": ["y{k} = cls.same(o)"],
    "create a closure over 1 value": ["f{k} = R.make_closure(cls.second, (o,))"],
    "invoke a closure over 1 value": ["y{k} = R.invoke_closure(f, (o,), ty_args=(R.Object,))"],
    "create a 2-tuple": ['y{k} = R.call_packed("vm.builtin.make_tuple", o, o, ty_args=(R.Object,))'],
    "if on a scalar": ["if c:", "    y{k} = o", "else:", "    y{k} = x"],
    "allocate and free a tensor": [
        's{k} = R.vm.alloc_storage(R.shape([1024]), R.prim_value(0), R.dtype("uint8"))',
        'y{k} = R.vm.alloc_tensor(s{k}, R.prim_value(0), R.shape([16, 16]), R.dtype("float32"))',
        "_a{k} = R.vm.kill_object(y{k})",
        "_b{k} = R.vm.kill_object(s{k})",
    ],
}


def median(run: Callable[[], object], per: float) -> float:
    run()
    times = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        run()
        times.append((time.perf_counter() - started) / per * 1e9)
    return statistics.median(times)


def machine(statements: list[str], mode: str) -> relax.VirtualMachine:
    lines = ["        " + line.replace("{k}", str(k)) for k in range(STATEMENTS) for line in statements]
    module = from_source(_MODULE.replace("{body}", "\n".join(lines)))
    return relax.VirtualMachine(relax.build(module, "llvm", exec_mode=mode), tvm.cpu())


def tensor(value: object, dtype: str = "int64") -> tvm.runtime.Tensor:
    return tvm.runtime.tensor(np.array(value, dtype))


def row_cost(statements: list[str], mode: str) -> float:
    vm, value = machine(statements, mode), tvm.runtime.ShapeTuple([1])
    vm.set_input("main", value, tensor([0], "float32"), (value, value), tensor(True, "bool"))

    def run() -> None:
        for _ in range(RUNS):
            vm.invoke_stateful("main")

    return median(run, RUNS)


def measure(mode: str) -> dict[str, float]:
    empty = row_cost([], mode)
    costs = {name: (row_cost(statements, mode) - empty) / STATEMENTS for name, statements in _ROWS.items()}
    vm = machine([], mode)
    costs["fib, per call"] = median(lambda: vm["fib"](tensor(18)), 8361)
    costs["counting loop, per iteration"] = median(lambda: vm["count"](tensor(1000), tensor(0)), 1001)
    pair = (tensor([0] * 4, "float32"), tensor([1] * 4, "float32"))
    costs["loop that carries a tuple, per iteration"] = median(lambda: vm["carry"](tensor(1000), pair), 1001)
    costs.update(host_costs(mode))
    return costs


def host_costs(mode: str) -> dict[str, float]:
    calls = 50
    called = "\n".join(f'        y{k} = R.call_packed("benchmarks.same", o, ty_args=(R.Object,))' for k in range(calls))
    tvm.register_global_func("benchmarks.same", lambda value: value, override=True)
    module = from_source(f"""
@I.ir_module
class Module:
    @R.function(pure=False)
    def integer(o: R.Prim("int64")) -> R.Prim("int64"):
        return o
    @R.function(pure=False)
    def tensor(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x
    @R.function(pure=False)
    def callbacks(o: R.Object) -> R.Object:
{called}
        return o
""")
    vm = relax.VirtualMachine(relax.build(module, "llvm", exec_mode=mode), tvm.cpu())
    integer, identity, callbacks = vm["integer"], vm["tensor"], vm["callbacks"]
    array = np.zeros(4, np.float32)

    def repeated(call: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(RUNS):
                call()

        return run

    call = median(repeated(lambda: integer(7)), RUNS)
    return {
        "int argument, int result": call,
        "array argument, tensor result": median(repeated(lambda: identity(tvm.runtime.from_dlpack(array))), RUNS),
        "call of a Python function": (median(repeated(lambda: callbacks(7)), RUNS) - call) / calls,
    }


modes = [measure(mode) for mode in ("bytecode", "compiled")]
print(json.dumps({name: [costs[name] for costs in modes] for name in modes[0]}))
