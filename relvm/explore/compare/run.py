"""Runs a program in several ways and holds what they compute against each other, value by value."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from relvm.compiler.build import build
from relvm.errors import RelvmArgumentError, RelvmNameError, expect_path, expect_type, near_matches
from relvm.explore.compare.instrument_values import (
    Watched,
    giving,
    is_comparable,
    outputs_of,
    watched_outputs,
    watched_values,
    with_watched,
)
from relvm.explore.compare.onnxruntime_values import read_proto, run_onnxruntime, with_all_outputs
from relvm.explore.compare.report import Comparison, ComparisonRow, make_row
from relvm.frontend.load_model import read_model
from relvm.ir.expr import Module, Var
from relvm.ir.interpreter import evaluate
from relvm.ir.random_inputs import random_array
from relvm.ir.symbolic import dim_vars
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.passes.to_anf import to_anf
from relvm.vm import Tensor, VirtualMachine

WAYS = ("reference", "bytecode", "compiled")
ONNXRUNTIME = "onnxruntime"


def compare(
    model: Module | str | Path | bytes | Any,
    *inputs: Any,
    function: str = "main",
    modes: Sequence[str] | None = None,
    tolerance: float = 1e-4,
    target: str = "c",
    fused: bool = True,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    seed: int = 0,
) -> Comparison:
    """Run a function in several ways, and find the first value that they do not agree on.

    Compared are the tensors, scalars and tuples of these that the function's top block computes; of a branch or a call
    only what it gives.  To be looked at a value is kept, so that operators do not share kernels as they do in the
    program as it is, whose results are compared at the end.

    Parameters
    ----------
    model
        A module, the path of a .relvm text, or an ONNX model: a path, the bytes of a file, an onnx.ModelProto.
    inputs
        Arrays and scalars; by default random ones, where symbolic dimensions have the largest size that `dims` says,
        else 1.
    function
        The one to run; of an ONNX model "main", which is all that it has.
    modes
        Of "reference", "bytecode", "compiled", and for ONNX models "onnxruntime"; by default all.  The others are held
        against the first, which cannot be "onnxruntime": its values are those of nodes, which are some of ours.
    tolerance
        The largest difference of two numbers that is none; of floats relative to the largest of the tensor, if that is
        above 1, and two units in the last place at least.
    target, fused
        What kernels are made of, and whether operators share them, as `vm.build` takes it.
    dims
        Sizes of symbolic dimensions by name: of an ONNX model as `from_onnx` takes them, of a module or a text those
        that random inputs have.
    seed
        For random inputs.

    Raises
    ------
    RelvmArgumentError
        There is no such mode; `tolerance` is no number or below 0; inputs are needed that cannot be random, or their
        number is wrong; or there are `dims` for a module or a text whose inputs are given.
    RelvmFormatError
        A file that is no ONNX model.
    RelvmNameError
        The module has no such public function, or no input has a dimension that `dims` names; or, in the mode
        "reference", the program calls a packed function.
    RelvmUnsupportedError
        There is no ONNX Runtime, or it does not run the model.

    Examples
    --------
    >>> from relvm.explore import compare
    >>> from relvm.frontend.text import parse_module
    >>> compare(parse_module("def main(x: f32[2, 3]) -> f32[2, 3] = softmax(relu(x), axis=1)")).agrees
    True
    """
    expect_type("function", function, str, "the name of a function")
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not tolerance >= 0:
        raise RelvmArgumentError(f"tolerance is {tolerance!r}, expected a number, not below 0")
    if modes is not None:
        expect_type("modes", modes, (list, tuple), "a list of modes")
    if isinstance(model, str | os.PathLike):
        expect_path("model", model)
    is_onnx = not isinstance(model, Module) and not (isinstance(model, str | Path) and Path(model).suffix == ".relvm")
    known = (*WAYS, ONNXRUNTIME) if is_onnx else WAYS
    chosen = known if modes is None else tuple(modes)
    _expect_modes(chosen, known)
    if is_onnx or not isinstance(model, Module | str | Path):
        program = _of_onnx(model, function, dims)
    else:
        program = _of_module(model, function)
    params = program.module[program.function].params
    if dims and not is_onnx:
        _expect_random(dims, inputs, params)
    if not inputs:
        given = {name: size for name, size in (dims or {}).items() if size is not None}
        sizes = {name: max(size) if isinstance(size, tuple) else size for name, size in given.items()}
        inputs = _random_inputs(params, sizes, seed)
    if len(inputs) != len(params):
        names = ", ".join(param.name for param in params)
        raise RelvmArgumentError(f"{program.function} takes {len(params)} inputs ({names}), got {len(inputs)}")
    found = {mode: program.run(mode, inputs, target, fused) for mode in chosen if mode != ONNXRUNTIME}
    from_nodes = program.run_nodes(inputs) if ONNXRUNTIME in chosen else {}
    return Comparison(program.title, chosen, tuple(_rows(program, found, from_nodes, tolerance)))


@dataclass(frozen=True, eq=False)
class _Program:
    """What is run: a module whose function `watching` gives the tuple of `values`, and `function` that of `results`;
    or, where there is but one result that is not in a tuple, `lone_result`, this one."""

    title: str
    module: Module
    function: str
    watching: str
    values: tuple[Watched, ...]
    results: tuple[Watched, ...]
    lone_result: bool = False
    proto: Any = None  # of an ONNX model with all its values as outputs

    def run(self, mode: str, inputs: Sequence[Any], target: str, fused: bool) -> tuple[Any, ...]:
        """The values, and the results."""
        if mode == "reference":
            module = infer_types(self.module)
            values, results = (evaluate(module, name, *inputs) for name in (self.watching, self.function))
        else:
            machine = VirtualMachine(build(self.module, mode, target, fused=fused))
            values, results = (machine[name](*inputs) for name in (self.watching, self.function))
        return (*values, results) if self.lone_result else (*values, *results)

    def run_nodes(self, inputs: Sequence[Any]) -> dict[str, np.ndarray]:
        """What ONNX Runtime gives, by the names of the graph's values."""
        names = dict(self.module[self.function].attributes)["input_names"]
        return run_onnxruntime(self.proto, dict(zip(names, map(np.asarray, inputs), strict=True)))


def _of_module(model: Module | str | Path, function: str) -> _Program:
    module = model if isinstance(model, Module) else read_model(Path(model))
    title = "module" if isinstance(model, Module) else Path(model).name
    normal = to_anf(infer_types(module))
    public = [f.name for f in normal.functions if not f.private]
    _expect_public(function, public)
    values = watched_values(normal[function])
    watched, watching = with_watched(normal, function, values)
    results = (Watched("returned", normal[function].block.result),)
    return _Program(title, watched, function, watching, values, results, lone_result=True)


def _of_onnx(model: Any, name: str, dims: Mapping[str, int | tuple[int, int] | None] | None) -> _Program:
    from relvm.frontend.onnx import from_onnx

    _expect_public(name, ["main"])
    proto = read_proto(model)
    count = len(proto.graph.output)
    proto = with_all_outputs(proto)
    normal = to_anf(infer_types(from_onnx(proto, dims=dims)))
    function = normal["main"]
    order = [name for node in proto.graph.node for name in node.output]
    values = watched_outputs(function, order)
    watched, watching = with_watched(normal, "main", values)
    outputs = list(outputs_of(function).items())[:count]
    results = tuple(Watched(f"returned {name}", expr, name) for name, expr in outputs)
    main = giving(function, [result.expr for result in results])
    title = Path(model).name if isinstance(model, str | Path) else proto.graph.name
    module = watched.with_functions(tuple(main if f is function else f for f in watched.functions))
    return _Program(title, module, "main", watching, values, results, proto=proto)


def _rows(
    program: _Program,
    found: Mapping[str, tuple[Any, ...]],
    from_nodes: Mapping[str, np.ndarray],
    tolerance: float,
) -> Iterator[ComparisonRow]:
    for place, watched in enumerate((*program.values, *program.results)):
        if not is_comparable(watched.expr.type):
            continue
        leaves = {mode: dict(_leaves(watched.name, values[place])) for mode, values in found.items()}
        for name in next(iter(leaves.values())):
            values = {mode: of_mode[name] for mode, of_mode in leaves.items()}
            if watched.source_name in from_nodes:
                values[ONNXRUNTIME] = from_nodes[watched.source_name]
            origin = watched.expr.origin if isinstance(watched.expr, Var) else ""
            yield make_row(name, origin, values, tolerance)


def _leaves(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """The tensors and scalars in a value, with the names of their places."""
    if isinstance(value, tuple):
        for place, item in enumerate(value):
            yield from _leaves(f"{name}[{place}]", item)
    else:
        yield name, np.array(value.numpy() if isinstance(value, Tensor) else value)


def _expect_public(name: str, public: Sequence[str]) -> None:
    if name not in public:
        raise RelvmNameError(f"no public function {name}{near_matches(name, public)}")


def _random_inputs(params: Sequence[Var], sizes: Mapping[str, int], seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    arrays = []
    for param in params:
        try:
            arrays.append(random_array(param.type, sizes, rng))
        except RelvmArgumentError as error:
            raise RelvmArgumentError(f"input {param.name}: {error}; give the inputs") from None
    return tuple(arrays)


def _expect_random(dims: Mapping[str, Any], inputs: Sequence[Any], params: Sequence[Var]) -> None:
    """Raises where `dims` are not those of random inputs of a module."""
    if inputs:
        raise RelvmArgumentError(f"dims: {', '.join(dims)}: sizes of random inputs, but inputs are given")
    shapes = (param.type.shape or () for param in params if isinstance(param.type, TensorType))
    names = {var.name for shape in shapes for dim in shape for var in dim_vars(dim)}
    for name in dims:
        if name not in names:
            raise RelvmNameError(f"dims: no input has a dimension {name}{near_matches(name, names)}")


def _expect_modes(modes: Sequence[str], known: Sequence[str]) -> None:
    for mode in modes:
        expect_type("modes", mode, str, "the name of a mode")
        if mode not in known:
            raise RelvmArgumentError(f"modes: {mode!r}: expected some of {', '.join(known)}{near_matches(mode, known)}")
    if len(set(modes)) < 2 or len(set(modes)) < len(modes):
        raise RelvmArgumentError(f"modes: expected at least two different ones, got {', '.join(modes) or 'none'}")
    if modes[0] == ONNXRUNTIME:
        raise RelvmArgumentError("modes: the others cannot be held against onnxruntime; give it last")
