"""Comparison of execution modes: run a program in several modes and compare their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from relvm.compiler.build import build
from relvm.data_classes import dataclass
from relvm.errors import (
    RelvmArgumentError,
    RelvmNameError,
    counted,
    expect_path,
    expect_type,
    known_names,
    near_matches,
)
from relvm.explore.compare.instrument_values import (
    Watched,
    add_values_function,
    is_comparable,
    outputs_of,
    returning_values,
    watched_outputs,
    watched_values,
)
from relvm.explore.compare.onnxruntime_values import read_proto, run_onnxruntime, with_all_outputs
from relvm.explore.compare.report import Comparison, ComparisonRow, make_row
from relvm.explore.selection import as_module, title_of
from relvm.frontend.onnx import from_onnx
from relvm.frontend.script import Script
from relvm.frontend.stablehlo_file import is_stablehlo
from relvm.frontend.torch_file import is_exported_program
from relvm.ir.expr import HasModule, Module, Var
from relvm.ir.interpreter import evaluate
from relvm.ir.random_inputs import random_array
from relvm.ir.symbolic import dim_vars
from relvm.ir.type_inference import infer_types
from relvm.ir.types import TensorType
from relvm.passes.to_anf import to_anf
from relvm.vm import Tensor, VirtualMachine

MODES = ("reference", "bytecode", "compiled")
ONNXRUNTIME = "onnxruntime"


def compare(
    model: Module | HasModule | str | Path | bytes | Any,
    *inputs: Any,
    function: str = "main",
    modes: Sequence[str] | None = None,
    tolerance: float = 1e-4,
    target: str = "c",
    fused: bool = True,
    dims: Mapping[str, int | tuple[int, int] | None] | None = None,
    seed: int = 0,
    progress: Callable[[str], object] | None = None,
) -> Comparison:
    """Run a function in several execution modes, and find the first value on which they disagree.

    `compare` changes a copy of the program so that it returns the tensors, scalars and tuples that the function's body
    computes.  Only the result of a branch or of a called function is compared, not the values inside it.  The changed
    program is fused less than the original.  The original program therefore also runs, and its results are compared at
    the end.

    Parameters
    ----------
    model
        A module, the path of a .relvm, .mlir or .pt2 file, or an ONNX model: a path, the bytes of a file, or an
        onnx.ModelProto.
    inputs
        Arrays and scalars.  The default is random inputs, in which a symbolic dimension has the largest size that
        `dims` allows, or 1 if `dims` does not name the dimension.
    function
        The function to run.  For an ONNX model it must be "main".
    modes
        At least two of "reference", "bytecode", "compiled", and for ONNX models "onnxruntime".  The default is all of
        them, except "onnxruntime" if ONNX Runtime is not installed.  The other modes are compared with the first mode.
        The first mode cannot be "onnxruntime", because ONNX Runtime computes only some of the values.
    tolerance
        The largest difference to ignore.  For floats it is relative to the largest element of the tensor if that is
        above 1, and at least two units in the last place.
    target
        The form of kernels: "c", "bytecode" or "numpy", or another target of `vm.build`.
    fused
        Whether operators are fused into common kernels.
    dims
        Sizes of symbolic dimensions by name.  For an ONNX model, they apply when the model is imported, as for
        `from_onnx`.  For other models, they are the sizes of random inputs.
    seed
        Seed of random inputs.
    progress
        A function that is called with the name of each mode before the program runs in it.

    Raises
    ------
    RelvmTypeError
        `model` is not a model, or `function`, `modes` or a name of a mode has the wrong type.
    RelvmArgumentError
        `modes` contains an unknown mode, a mode twice or fewer than two modes, or begins with "onnxruntime";
        `tolerance` is not a number or is negative; the number of inputs is wrong; no random value can be generated for
        an input; or both `dims` and inputs are given for a model that is not an ONNX model.
    RelvmFormatError
        The file is not a model.
    RelvmNameError
        The module has no such public function; no input has a dimension named in `dims`; or, in the mode "reference",
        the program calls a packed function.
    RelvmUnsupportedError
        ONNX Runtime is not installed, or cannot run the model.

    Examples
    --------
    >>> from relvm.explore import compare
    >>> from relvm.frontend.text import parse_module
    >>> compare(parse_module("def main(x: f32[2, 3]) -> f32[2, 3] = softmax(relu(x), axis=1)")).agrees
    True
    """
    expect_type("function", function, str, "a function name")
    if isinstance(tolerance, bool) or not isinstance(tolerance, Real) or not tolerance >= 0:
        raise RelvmArgumentError(f"tolerance is {tolerance!r}, expected a number of at least 0")
    if modes is not None:
        expect_type("modes", modes, (list, tuple), "a list of modes")
    if isinstance(model, str | os.PathLike):
        expect_path("model", model)
    is_text = isinstance(model, str | os.PathLike) and (
        Path(model).suffix == ".relvm" or is_stablehlo(model) or is_exported_program(model)
    )
    is_onnx = not is_text and not isinstance(model, Module | Script)
    known = (*MODES, ONNXRUNTIME) if is_onnx else MODES
    default = known if find_spec("onnxruntime") and find_spec("onnx") else MODES
    chosen = default if modes is None else tuple(modes)
    _expect_modes(chosen, known)
    if is_onnx and find_spec("onnx"):
        program = _program_of_onnx(model, function, dims)
    else:
        program = _program_of_module(from_onnx(model, dims=dims) if is_onnx else model, function, title_of(model))
    params = program.module[program.function].params
    if dims and not is_onnx:
        _expect_dims_usable(dims, inputs, params)
    if not inputs:
        given = {name: size for name, size in (dims or {}).items() if size is not None}
        sizes = {name: max(size) if isinstance(size, tuple) else size for name, size in given.items()}
        inputs = _random_inputs(params, sizes, seed)
    if len(inputs) != len(params):
        names = ", ".join(param.name for param in params)
        raise RelvmArgumentError(
            f"{program.function} takes {counted(len(params), 'input')} ({names}), got {len(inputs)}"
        )
    found, from_nodes = {}, {}
    for mode in chosen:
        if progress:
            progress(mode)
        if mode == ONNXRUNTIME:
            from_nodes = program.run_nodes(inputs)
        else:
            found[mode] = program.run(mode, inputs, target, fused)
    return Comparison(program.title, chosen, tuple(_rows(program, found, from_nodes, tolerance)))


@dataclass(frozen=True, eq=False)
class _Program:
    """A program whose values are compared in several execution modes.

    Two functions of its module are run.  The function `function` is the unchanged program, which returns the tuple of
    `results`, or if `has_single_result` is true, its only result without a tuple.  The function `values_function` is a
    copy that returns the tuple of `values`, which are the intermediate values.
    """

    title: str
    module: Module
    function: str
    values_function: str
    values: tuple[Watched, ...]
    results: tuple[Watched, ...]
    has_single_result: bool = False
    proto: Any = None  # the ONNX model with all its values as outputs

    def run(self, mode: str, inputs: Sequence[Any], target: str, fused: bool) -> tuple[Any, ...]:
        """Run the program in the execution mode `mode`.  Return its intermediate values, followed by its results."""
        if mode == "reference":
            module = infer_types(self.module)
            values, results = (evaluate(module, name, *inputs) for name in (self.values_function, self.function))
        else:
            machine = VirtualMachine(build(self.module, mode, target, fused=fused))
            values, results = (machine[name](*inputs) for name in (self.values_function, self.function))
        return (*values, results) if self.has_single_result else (*values, *results)

    def run_nodes(self, inputs: Sequence[Any]) -> dict[str, np.ndarray]:
        """Run the ONNX model in ONNX Runtime.  Return the values that it computes, by their names in the graph."""
        names = self.module[self.function].input_names
        return run_onnxruntime(self.proto, dict(zip(names, map(np.asarray, inputs), strict=True)))


def _program_of_module(model: Module | HasModule | str | Path, function: str, title: str) -> _Program:
    module = as_module(model, None)
    normal = to_anf(infer_types(module))
    public = [f.name for f in normal.functions if not f.private]
    _expect_public(function, public)
    values = watched_values(normal[function])
    watched, values_function = add_values_function(normal, function, values)
    results = (Watched("returned", normal[function].block.result),)
    return _Program(title, watched, function, values_function, values, results, has_single_result=True)


def _program_of_onnx(model: Any, name: str, dims: Mapping[str, int | tuple[int, int] | None] | None) -> _Program:
    _expect_public(name, ["main"])
    proto = read_proto(model)
    count = len(proto.graph.output)
    proto = with_all_outputs(proto)
    normal = to_anf(infer_types(from_onnx(proto, dims=dims)))
    function = normal["main"]
    order = [name for node in proto.graph.node for name in node.output]
    values = watched_outputs(function, order)
    watched, values_function = add_values_function(normal, "main", values)
    outputs = list(outputs_of(function).items())[:count]
    results = tuple(Watched(f"returned {name}", expr, name) for name, expr in outputs)
    main = returning_values(function, [result.expr for result in results])
    title = Path(model).name if isinstance(model, str | Path) else proto.graph.name
    module = watched.with_functions(tuple(main if f is function else f for f in watched.functions))
    return _Program(title, module, "main", values_function, values, results, proto=proto)


def _rows(
    program: _Program,
    found: Mapping[str, tuple[Any, ...]],
    from_nodes: Mapping[str, np.ndarray],
    tolerance: float,
) -> Iterator[ComparisonRow]:
    for place, watched in enumerate((*program.values, *program.results)):
        if not is_comparable(watched.expr.type):
            continue
        leaves = {mode: dict(_named_leaves(watched.name, values[place])) for mode, values in found.items()}
        for name in next(iter(leaves.values())):
            values = {mode: of_mode[name] for mode, of_mode in leaves.items()}
            if watched.source_name in from_nodes:
                values[ONNXRUNTIME] = from_nodes[watched.source_name]
            origin = watched.expr.origin if isinstance(watched.expr, Var) else ""
            yield make_row(name, origin, values, tolerance)


def _named_leaves(name: str, value: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Yield each tensor and scalar in `value`, which can be a nested tuple.  Each has a name such as `name[0][1]`."""
    if isinstance(value, tuple):
        for place, item in enumerate(value):
            yield from _named_leaves(f"{name}[{place}]", item)
    else:
        yield name, np.array(value.numpy() if isinstance(value, Tensor) else value)


def _expect_public(name: str, public: Sequence[str]) -> None:
    if name not in public:
        raise RelvmNameError(f"no public function {name}{known_names(name, public)}")


def _random_inputs(params: Sequence[Var], sizes: Mapping[str, int], seed: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(seed)
    arrays = []
    for param in params:
        try:
            arrays.append(random_array(param.type, sizes, rng))
        except RelvmArgumentError as error:
            raise RelvmArgumentError(f"input {param.name}: {error}; pass the inputs") from None
    return tuple(arrays)


def _expect_dims_usable(dims: Mapping[str, Any], inputs: Sequence[Any], params: Sequence[Var]) -> None:
    """Check the argument `dims` of `compare`, which sets the sizes of random inputs.

    Raise an error if there are inputs, or if `dims` names a dimension that no parameter has.
    """
    if inputs:
        raise RelvmArgumentError(
            f"dims: {', '.join(dims)}: the sizes apply only to random inputs, but inputs are given"
        )
    shapes = (param.type.shape or () for param in params if isinstance(param.type, TensorType))
    names = {var.name for shape in shapes for dim in shape for var in dim_vars(dim)}
    for name in dims:
        if name not in names:
            raise RelvmNameError(f"dims: no input has a dimension {name}{known_names(name, names)}")


def _expect_modes(modes: Sequence[str], known: Sequence[str]) -> None:
    for mode in modes:
        expect_type("modes", mode, str, "a mode name")
        if mode not in known:
            raise RelvmArgumentError(
                f"modes: {mode!r} is not available; expected one or more of {', '.join(known)}"
                f"{near_matches(mode, known)}"
            )
    if len(set(modes)) < 2 or len(set(modes)) < len(modes):
        raise RelvmArgumentError(f"modes: expected at least two distinct modes, got {', '.join(modes) or 'none'}")
    if modes[0] == ONNXRUNTIME:
        raise RelvmArgumentError("modes: onnxruntime cannot be the baseline of the comparison; put it last")
