"""Random kernel definitions, with loops over the elements of one tensor, and calls of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from random_programs.state import Source, State
from relvm.ir import kernel_def as kd
from relvm.ir.dtypes import F32, I32, I64, U8, DType
from relvm.ir.expr import Expr
from relvm.ir.kernel_def_builder import KernelDefBuilder
from relvm.ir.loop_ir import IfThen, Scalar
from relvm.ir.symbolic import AnyDim, dim_var
from relvm.ir.types import TensorType, Type

DTYPES = (F32, I64, I32, U8)


def kernel_call(state: State) -> Expr | None:
    """Call a new or an existing kernel of the module.  Return None if no tensor in scope is suitable."""
    if not state.has_kernels:
        return None
    x = state.find(lambda type_: _is_suitable(type_) and state.fits(type_))
    if x is None:
        return None
    dtype, rank = x.type.dtype, x.type.rank
    known = [name for name, form in state.kernels.items() if form == (dtype, rank)]
    name = state.source.choice(known) if known and state.source.one_in(3) else f"k{len(state.kernels)}"
    if name not in state.kernels:
        state.builder.kernel(_Maker(state.source, name, dtype, rank).kernel())
        state.kernels[name] = (dtype, rank)
    return state.see(state.builder.call_kernel(name, x))


def _is_suitable(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.dtype in DTYPES and type_.shape is not None and 1 <= type_.rank <= 2


class _Maker:
    """Generates one kernel."""

    def __init__(self, source: Source, name: str, dtype: DType, rank: int) -> None:
        self.source = source
        self.dtype = dtype
        self.dims: dict[str, AnyDim] = {f"d{axis}": dim_var(f"d{axis}") for axis in range(rank)}
        self.build = KernelDefBuilder(name, self.dims)
        self.shape = tuple(self.dims.values())
        self.checked = False  # whether indices may be checked at run time

    def kernel(self) -> kd.KernelDef:
        build = self.build
        build.param("x", TensorType(self.dtype, self.shape), is_output=False)
        build.param("out", TensorType(self.dtype, self.shape), is_output=True)
        has_total = len(self.shape) == 2 and self.source.one_in(2)
        if has_total:
            build.param("total", TensorType(self.dtype, self.shape[:1]), is_output=True)
        self.elements()
        if has_total:
            self.reduction()
        return build.finish()

    def elements(self) -> None:
        """Add a loop nest that writes all or some elements of the output `out`."""
        build, rank = self.build, len(self.shape)
        kinds = [
            self.source.choice(("range", "parallel", "simd")[: 2 if axis < rank - 1 else 3]) for axis in range(rank)
        ]
        if "parallel" in kinds[:-1] and kinds[-1] == "parallel":
            kinds[-1] = "range"
        self.checked = set(kinds) == {"range"}
        starts = [self.source.integer(0, 1) if self.source.one_in(3) else 0 for _ in range(rank)]
        with ExitStack() as stack:
            for axis, kind in enumerate(kinds):
                stack.enter_context(build.loop(f"i{axis}", starts[axis], build.value(f"d{axis}"), kind))
            at = tuple(build.value(f"i{axis}") for axis in range(rank))
            build.let("v", self.value(2))
            if "simd" not in kinds and self.source.one_in(3):
                with build.block() as then:
                    build.put("out", at, kd.binary_operation("add", build.value("v"), kd.as_scalar(1, self.dtype)))
                build.add(IfThen(self.condition(), tuple(then)))
            else:
                build.put("out", at, build.value("v"))
            if self.source.one_in(4):
                build.put("out", at, kd.call("max", (build.element("out", at), self.value(1))))

    def reduction(self) -> None:
        """Add a loop that reduces each row of x."""
        build = self.build
        kind, function = self.source.choice(("range", "simd")), self.source.choice(("add", "sub", "max", "min"))
        with build.loop("i0", 0, build.value("d0"), self.source.choice(("range", "parallel"))):
            build.let("acc", kd.as_scalar(0, self.dtype))
            with build.loop("i1", 0, build.value("d1"), kind):
                self.checked = False
                value = self.value(1)
                operands = (build.value("acc"), value)
                extreme = function in ("max", "min")
                build.assign(
                    "acc", kd.call(function, operands) if extreme else kd.binary_operation(function, *operands)
                )
            build.put("total", (build.value("i0"),), build.value("acc"))

    def value(self, depth: int) -> Scalar:
        """Return a random scalar expression of the kernel's dtype.  f32 operations do not amplify rounding errors."""
        if depth == 0 or self.source.one_in(4):
            return self.source.choice((self.element, self.element, self.number, self.counter))()
        first, second = self.value(depth - 1), self.value(depth - 1)
        operations: tuple[Callable[[], kd.Operand], ...] = (
            lambda: kd.call("max", (first, second)),
            lambda: kd.call("min", (first, second)),
            lambda: kd.conditional(self.condition(), first, second),
            lambda: kd.call("abs", (first,)),
            lambda: kd.negative(first),
        )
        if self.dtype == F32:
            operations += (lambda: kd.binary_operation("mul", kd.binary_operation("sub", first, second), 0.5),)
        else:
            names = ("add", "sub", "mul", "floordiv", "mod")
            operations += tuple(lambda name=name: kd.binary_operation(name, first, second) for name in names)
        return kd.as_scalar(self.source.choice(operations)(), self.dtype)

    def number(self) -> Scalar:
        value = self.source.integer(0, 5)
        return kd.as_scalar(value * 0.25 if self.dtype == F32 else value, self.dtype)

    def counter(self) -> Scalar:
        return kd.cast(self.build.value(f"i{self.source.integer(0, len(self.shape) - 1)}"), self.dtype)

    def condition(self) -> Scalar:
        left, right = (self.build.value(f"{letter}{self.source.integer(0, len(self.shape) - 1)}") for letter in "id")
        test = kd.binary_operation(
            self.source.choice(("lt", "ge", "eq", "ne")), kd.binary_operation("add", left, 1), right
        )
        other = kd.binary_operation("eq", kd.binary_operation("mod", left, 2), 0)
        match self.source.integer(0, 3):
            case 0:
                return kd.binary_operation("and", test, other)
            case 1:
                return kd.binary_operation("or", kd.negation(test), other)
        return test

    def element(self) -> Scalar:
        """Return an element of x.

        Each index is provably in range, guarded by a condition, or in range without a proof.
        """
        guards: list[Scalar] = []
        indices = tuple(self.index(axis, guards) for axis in range(len(self.shape)))
        element: Scalar = self.build.element("x", indices)
        for guard in guards:
            element = kd.conditional(guard, element, kd.as_scalar(1, self.dtype))
        return element

    def index(self, axis: int, guards: list[Scalar]) -> kd.Operand:
        i, size = self.build.value(f"i{axis}"), self.build.value(f"d{axis}")
        match self.source.integer(0, 7 if self.checked else 6):
            case 1:
                return kd.binary_operation("sub", kd.binary_operation("sub", size, 1), i)
            case 2:
                return kd.call("max", (kd.binary_operation("sub", i, 1), kd.as_scalar(0)))
            case 3:
                return kd.call("min", (kd.binary_operation("add", i, 2), kd.binary_operation("sub", size, 1)))
            case 4:
                guards.append(kd.binary_operation("gt", i, 0))
                return kd.binary_operation("sub", i, 1)
            case 5:
                guards.append(kd.binary_operation("lt", kd.binary_operation("add", i, 1), size))
                return kd.binary_operation("add", i, 1)
            case 6:
                return kd.binary_operation("floordiv", i, 2)
            case 7:
                return kd.binary_operation("mod", kd.binary_operation("mul", i, 3), size)
        return i
