"""Every operator has a complete declaration.  Its type rule, NumPy function and kernel agree for all kinds of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
from ops.harness import Call, Kernels, Library
from ops.mistakes import MISTAKES
from ops.samples import SAMPLES, Sample
from ops.string_mistakes import string_mistakes
from support.modes import assert_same_bits

import relvm.ops
from relvm.ir.dtypes import dtype_of
from relvm.ir.expr import Attributes, BuiltinCall, Expr, KernelCall
from relvm.ir.operator import Effect, find_operator, operators
from relvm.ir.scalar_ops import scalar_dtype
from relvm.ir.symbolic import AnyDim, as_var, dim_var, evaluate_with
from relvm.ir.types import ListType, OptionalType, PrimType, ShapeType, TensorType, TupleType, Type
from relvm.kernels.lowering_rules import (
    Alias,
    Builtin,
    Composition,
    Contraction,
    CustomKernel,
    DataMovement,
    Pointwise,
    Reduce,
    Reinterpret,
)
from relvm.tables import BUILTINS

ALL_MISTAKES = (*MISTAKES, *string_mistakes())
NAMES = sorted(operators())
SAMPLED = sorted({sample.op for sample in SAMPLES})
GOOD_SAMPLES = {name: [s for s in SAMPLES if s.op == name and not s.fails] for name in SAMPLED}
FORMS = (Pointwise, Contraction, DataMovement, Reduce, Composition, CustomKernel, Reinterpret, Alias, Builtin)
_TOLERANCE = {"float32": 2e-5, "float64": 1e-11}


def static_type(arg) -> Type:
    match arg:
        case np.ndarray():
            return TensorType(dtype_of(arg.dtype), arg.shape)
        case tuple():
            return ShapeType(arg)
        case list():
            return relvm.ops.make_list.infer(tuple(map(static_type, arg)), ())
        case None:
            return OptionalType(None)
    return PrimType(scalar_dtype(arg))


@cache
def symbolic_types(sample: Sample) -> tuple[tuple[Type, ...], dict]:
    """Return the types of a sample's arguments with symbolic sizes, and the values of the dimension variables.

    Sizes of 1 and the sizes in `sample.keep` remain numbers.
    """
    dims: dict[int, AnyDim] = {}

    def symbolic(size: int) -> AnyDim:
        return size if size == 1 or size in sample.keep else dims.setdefault(size, dim_var(f"n{size}"))

    types = []
    for arg in sample.args:
        if isinstance(arg, np.ndarray):
            types.append(TensorType(dtype_of(arg.dtype), tuple(map(symbolic, arg.shape))))
        else:
            types.append(ShapeType(tuple(map(symbolic, arg))))
    return tuple(types), {as_var(dim): size for size, dim in dims.items()}


def known_rank(type_: Type) -> Type:
    """Return the type of a tensor or shape without its sizes."""
    is_tensor = isinstance(type_, TensorType)
    return TensorType(type_.dtype, None, type_.rank) if is_tensor else ShapeType(None, type_.rank)


def attributes_of(sample: Sample) -> Attributes:
    return find_operator(sample.op).bind(sample.args, sample.attributes)


def infer(sample: Sample, types: Iterable[Type]) -> Type:
    return find_operator(sample.op).infer(tuple(types), attributes_of(sample))


def static_result(sample: Sample) -> Type:
    return infer(sample, map(static_type, sample.args))


def numpy_result(sample: Sample):
    return find_operator(sample.op).numpy(*sample.args, **dict(attributes_of(sample)))


@cache
def kernels() -> tuple[Kernels, dict]:
    """Return the kernels of all samples, and the number of each call by its sample and whether sizes are symbolic.

    Symbolic sizes are included only for samples whose kernels fail.  test_modes.py tests the others.
    """
    calls, numbers = [], {}
    for sample in SAMPLES:
        op = find_operator(sample.op)
        variants = {False: tuple(map(static_type, sample.args))}
        if sample.keep is not None and sample.fails:
            variants[True] = symbolic_types(sample)[0]
        for symbolic, types in variants.items():
            numbers[sample, symbolic] = len(calls)
            calls.append(Call(op, types, sample.attributes))
    return Kernels(calls), numbers


@pytest.mark.parametrize("name", NAMES)
def test_declaration_is_whole(name):
    op = operators()[name]
    is_tested_by_itself = op.effect is Effect.IMPURE
    assert is_tested_by_itself or any(sample.op == name for sample in SAMPLES), f"{name} has no sample"
    assert "Result" in op.doc and "Raises" in op.doc and "Source: " in op.doc
    for parameter in (*op.parameters, *op.attributes):
        assert parameter.name in op.doc, f"the documentation of {name} does not mention {parameter.name}"
    assert callable(op.numpy)
    assert isinstance(op.lower, FORMS)
    assert getattr(relvm.ops, name) is op


def check_type(type_: Type, result, values: dict) -> None:
    def sizes(dims):
        return tuple(evaluate_with(dim, values.get) for dim in dims)

    if isinstance(type_, ShapeType):
        assert type_.rank in (None, len(result)) and (type_.dims is None or sizes(type_.dims) == result)
        return
    if isinstance(type_, ListType):
        for item in result:
            check_type(type_.item, item, values)
        return
    if isinstance(type_, PrimType):
        assert scalar_dtype(result) == type_.dtype
        return
    if isinstance(type_, TupleType):
        for field, part in zip(type_.fields, result, strict=True):
            check_type(field, part, values)
        return
    result = np.asarray(result)
    assert type_.rank == result.ndim and (type_.shape is None or sizes(type_.shape) == result.shape)
    assert np.can_cast(result.dtype, type_.dtype.numpy, "same_kind")


@contextmanager
def naming(sample: Sample) -> Iterator[None]:
    """Add the name of a sample to errors."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"sample: {sample}")
        raise


def check_rank(type_: Type, result) -> None:
    if isinstance(type_, TupleType):
        assert [field.rank for field in type_.fields] == list(map(np.ndim, result))
    else:
        assert type_.rank == (len(result) if isinstance(type_, ShapeType) else np.ndim(result))


@pytest.mark.parametrize("name", SAMPLED)
def test_type_rule_gives_what_numpy_gives(name):
    """The sizes of the arguments are numbers, then symbolic, then unknown but for the rank."""
    for sample in GOOD_SAMPLES[name]:
        with naming(sample):
            result = numpy_result(sample)
            check_type(static_result(sample), result, {})
            if sample.keep is not None:
                types, values = symbolic_types(sample)
                check_type(infer(sample, types), result, values)
                check_rank(infer(sample, map(known_rank, types)), result)


@pytest.mark.parametrize("mistake", ALL_MISTAKES, ids=str)
def test_mistakes_are_told(mistake):
    op = find_operator(mistake.op)
    with pytest.raises(mistake.error, match=f"^{mistake.op}") as raised:
        op.infer(mistake.types, op.bind(mistake.types, mistake.attributes))
    assert mistake.message in str(raised.value)


@pytest.mark.parametrize("name", sorted({*NAMES} - {"is_null", "random_bits"}))  # no argument is invalid for these
def test_mistakes_are_listed_for_each_operator(name):
    assert any(mistake.op == name for mistake in ALL_MISTAKES)


def outputs_of(sample: Sample, result) -> list[tuple[TensorType, np.ndarray]]:
    """Return the tensors in the result of a sample, each with its type.  result: a tensor or a tuple."""
    type_ = static_result(sample)
    fields, parts = (type_.fields, result) if isinstance(type_, TupleType) else ((type_,), (result,))
    return [(field, np.asarray(part, field.dtype.numpy)) for field, part in zip(fields, parts, strict=True)]


def assert_same(got: np.ndarray, expected: np.ndarray, operator: str) -> None:
    """Check the result of an operator.

    In a matrix product or a convolution, terms of a sum can cancel, in an order that NumPy chooses for each processor.
    The error of an element is then relative to the terms, and thus to the largest elements of the result.
    """
    if expected.dtype.kind != "f":
        np.testing.assert_array_equal(got, expected)
        return
    tolerance = _TOLERANCE[expected.dtype.name]
    finite = np.abs(expected[np.isfinite(expected)])
    largest = max(1.0, finite.max(initial=0)) if isinstance(find_operator(operator).lower, Contraction) else 1.0
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=tolerance * largest, equal_nan=True)


def assert_result(sample: Sample, got) -> None:
    """Check that a machine's result, in the form of `modes.plain`, is that of NumPy."""
    expected, type_ = numpy_result(sample), static_result(sample)
    if isinstance(type_, ListType):
        for part, wanted in zip(got, expected, strict=True):
            assert_same(part, np.asarray(wanted), sample.op)
    elif isinstance(type_, TensorType | TupleType):
        parts = got if isinstance(got, tuple) else (got,)
        for part, (_, wanted) in zip(parts, outputs_of(sample, expected), strict=True):
            assert_same(part, wanted, sample.op)
    elif isinstance(type_, PrimType):
        assert_same_bits(got, expected)
    else:
        assert tuple(got) == expected


@pytest.mark.parametrize("sample", [s for s in SAMPLES if not s.fails], ids=str)
def test_kernel_gives_what_numpy_gives(sample):
    compiled, numbers = kernels()
    assert_gives_what_numpy_gives(sample, compiled.what_runs(numbers[sample, False]), compiled.library, {})


def assert_gives_what_numpy_gives(sample: Sample, runs: Expr, library: Library | None, values: dict) -> None:
    """Run a sample and assert that its results are those of NumPy.

    runs: the expression to which the sample was lowered.  library: the library with its kernel, if it is a kernel call.
    values: the values of the dimension variables.
    """
    arrays = [arg for arg in sample.args if isinstance(arg, np.ndarray)]
    expected = numpy_result(sample)
    match runs:
        case KernelCall(kernel):
            wanted = [part for _, part in outputs_of(sample, expected)]
            made = [np.full(part.shape, 77).astype(part.dtype) for part in wanted]
            library.run(kernel, arrays, made)
            for got, part in zip(made, wanted, strict=True):
                assert_same(got, part, sample.op)
        case BuiltinCall("reshape", (_, shape)):
            assert tuple(evaluate_with(dim, values.get) for dim in shape.dims) == expected.shape
            assert_same(expected.ravel(), arrays[0].ravel(), sample.op)
        case BuiltinCall(name):
            assert name in {row.name for row in BUILTINS} and name == find_operator(sample.op).lower.name
        case _:
            assert_same(expected, arrays[0], sample.op)


@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
@pytest.mark.parametrize("sample", [s for s in SAMPLES if s.fails], ids=str)
def test_kernel_fails_where_its_numpy_meaning_fails(sample, symbolic):
    with pytest.raises(sample.fails, match=f"^{sample.op}: ") as meant:
        numpy_result(sample)
    compiled, numbers = kernels()
    type_ = static_result(sample)
    fields = type_.fields if isinstance(type_, TupleType) else (type_,)
    made = [np.zeros(field.shape, field.dtype.numpy) for field in fields]
    arrays = [arg for arg in sample.args if isinstance(arg, np.ndarray)]
    with pytest.raises(sample.fails) as raised:
        compiled.library.run(compiled.what_runs(numbers[sample, symbolic]).kernel, arrays, made)
    assert str(raised.value) == str(meant.value)


def test_kernels_check_their_arguments():
    x = TensorType(dtype_of(np.float32), (dim_var("n"), dim_var("m")))
    compiled = Kernels([Call(find_operator("add"), (x, x), {})])
    kernel, library = compiled.what_runs(0).kernel, compiled.library
    out = np.zeros((6, 7), np.float32)
    with pytest.raises(TypeError, match="dtype and rank"):
        library.run(kernel, [out, out.astype(np.float64)], [out])
    with pytest.raises(ValueError, match="dimension 0"):
        library.run(kernel, [out, out[:5]], [out])
