"""Printing of the entry point of an export.  The entry point checks its arguments and calls the lowered function."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

from relvm.aot.c.expressions import NameOf, guards_in
from relvm.aot.c.failures import failure, printf
from relvm.aot.c.functions import size_ranges
from relvm.aot.c.header import packed_signature, run_signature
from relvm.aot.c.mangling import Names
from relvm.aot.config import AotConfig, CallKind
from relvm.aot.lower.ir import LoweredFunction, LoweredModule, Port, ScalarVar
from relvm.aot.metadata_model import dim_text, packed_inputs, port_dtype, port_shape, range_text, size_names
from relvm.codegen.c.expression import CExpression, cast, dimension, infix, integer, prefix, primary
from relvm.codegen.c.kernel import argument_checks
from relvm.codegen.c.scalars import CTYPES
from relvm.ir.dtypes import I64
from relvm.ir.symbolic import AnyDim, DimVar, as_var, var_dim


def print_entry(module: LoweredModule, pool_bytes: tuple[int, ...], names: Names, config: AotConfig) -> str:
    """Return the C text of the static memory pools, the entry point function and its descriptor.

    The descriptor is a struct through which C code can call the model without knowing the types of the model.

    Parameters
    ----------
    module
        The lowered module.  Its last function is called by the entry point.
    pool_bytes
        The size in bytes of each pool of `config`.
    names
        The C names of the functions of the module.
    config
        The options of the export.
    """
    printer = _PackedEntry if config.interface == "packed" else _StructEntry
    return printer(module, pool_bytes, names, config).text()


class _Entry:
    """Base class of the printers of entry points.  Each value of `AotConfig.interface` ("c", "packed") has a
    printer.
    """

    def __init__(self, module: LoweredModule, pool_bytes: tuple[int, ...], names: Names, config: AotConfig) -> None:
        self.module = module
        self.entry: LoweredFunction = module.functions[-1]
        self.config = config
        self.pools = list(zip(config.pools, pool_bytes, strict=True))
        self.symbol = names.function(self.entry.name)
        self.size_names = size_names(module)

    def caller_pool(self, number: int) -> CExpression:
        """Return the C expression of pool `number`.  The caller provides this pool."""
        raise NotImplementedError

    def function(self) -> list[str]:
        """Return the lines of the entry point function."""
        raise NotImplementedError

    def descriptor(self) -> str:
        """Return the C definition of the descriptor, a struct for callers who do not know the types of the model."""
        raise NotImplementedError

    def text(self) -> str:
        static = [
            f"static RVM_ALIGNED({self.config.base_alignment}) uint8_t {self.config.name}_pool_{pool.name}[{size}];"
            for pool, size in self.pools
            if size and not self.config.caller_provides_pools
        ]
        return "\n\n".join([*(["\n".join(static)] if static else []), "\n".join(self.function()), self.descriptor()])

    def fail(self, status: str, message: str, *numbers: CExpression) -> str:
        """Return the C statement that ends the run with an error (see `failure`)."""
        return failure(self.module.calls, status, message, *numbers)

    def pool_arguments(self) -> list[CExpression]:
        """Return the C expressions of the pools that are not empty, for the call of the lowered function."""
        return [self.pool(number) for number, (_, size) in enumerate(self.pools) if size]

    def pool(self, number: int) -> CExpression:
        if self.config.caller_provides_pools:
            return self.caller_pool(number)
        return primary(f"{self.config.name}_pool_{self.pools[number][0].name}")

    def expect_aligned(self) -> list[str]:
        """Return C statements that check that the pools provided by the caller are aligned."""
        if not self.config.caller_provides_pools:
            return []
        mask = integer(self.config.base_alignment - 1)
        addresses = (cast("uintptr_t", pool) for pool in self.pool_arguments())
        conditions = (infix("!=", infix("&", address, mask), integer(0)) for address in addresses)
        fail = self.fail("ARGUMENT_ERROR", f"expected pools aligned to {self.config.base_alignment} bytes")
        return [f"  if ({condition}) {fail}" for condition in conditions]

    def check_bounds(self, size_of: NameOf) -> Iterator[str]:
        """Yield C statements that check that sizes are within their bounds.

        size_of: a function that returns the C expression of a size.
        """
        for var, low, high in self.entry.sizes:
            size = size_of(var)
            conditions = [] if low == I64.lowest else [infix("<", size, integer(low))]
            conditions += [] if high is None else [infix(">", size, integer(high))]
            if conditions:
                text = f"size {self.size_names[var]}: expected {range_text(low, high)}, got %lld"
                yield f"  if ({reduce(partial(infix, '||'), conditions)}) {self.fail('SHAPE_ERROR', text, size)}"

    def call(self, tensors: list[str], size_of: NameOf, scalars: list[str], results: list[str]) -> str:
        first = [] if self.module.calls is CallKind.UNPACKED else ["result"]
        sizes = [str(size_of(var)) for var, _, _ in self.entry.sizes]
        pools = map(str, self.pool_arguments())
        return f"{self.symbol}({', '.join([*first, *pools, *tensors, *sizes, *scalars, *results])})"


class _StructEntry(_Entry):
    """Printer of an entry point that takes a struct of inputs and a struct of outputs."""

    def caller_pool(self, number: int) -> CExpression:
        return primary(f"workspaces->{self.pools[number][0].name}")

    def function(self) -> list[str]:
        inputs, outputs = _names_by_value(self.module.inputs), _names_by_value(self.module.outputs)
        tensors = [f"inputs->{inputs[number]}" for number in self.entry.inputs]
        tensors += [f"outputs->{outputs[number]}" for number in self.entry.outputs]
        results = [f"outputs->{outputs[var]}" for var in self.entry.results]
        pointers = [*tensors, *results]
        conditions = ["!inputs", "!outputs"]
        if self.config.caller_provides_pools:
            conditions.append("!workspaces")
            pointers += map(str, self.pool_arguments())
        body = [f"  if ({' || '.join(conditions)}) return RVM_ARGUMENT_ERROR;"]
        if pointers:
            body.append(f"  if ({' || '.join(f'!{each}' for each in pointers)}) return RVM_ARGUMENT_ERROR;")

        def size_of(var: DimVar) -> CExpression:
            return primary(f"inputs->{inputs[var]}")

        scalars = [f"inputs->{inputs[var]}" for var in self.entry.scalars]
        body += [*self.expect_aligned(), *self.check_bounds(size_of)]
        call = self.call(tensors, size_of, scalars, results)
        return [f"{run_signature(self.config)} {{", *body, f"  return {call};", "}"]

    def descriptor(self) -> str:
        name = self.config.name
        given = ", workspaces" if self.config.caller_provides_pools else ""
        return "\n".join(
            [
                f"static int32_t {name}_run_any(const void *inputs, const void *outputs, const void *workspaces) {{",
                *([] if given else ["  (void)workspaces;"]),
                f"  return {name}_run(inputs, outputs{given});",
                "}",
                "",
                f"const struct relvm_aot_model {name}_model = "
                f'{{"{name}", {name}_run_any, {len(self.module.inputs)}, {len(self.module.outputs)}}};',
            ]
        )


class _PackedEntry(_Entry):
    """Printer of an entry point that takes an array of tensors.

    The tensors are the inputs, the outputs, and the pools if the caller provides pools.
    """

    def __init__(self, *args) -> None:
        super().__init__(*args)
        inputs = packed_inputs(self.module)
        self.ports = [*inputs, *self.module.outputs]
        self.input_numbers = {port.value: number for number, port in enumerate(inputs)}
        self.output_numbers = {port.value: len(inputs) + number for number, port in enumerate(self.module.outputs)}
        self.size_indices: dict[AnyDim, int] = {}  # dimension that rvm_kernel_check determines -> its index

    def caller_pool(self, number: int) -> CExpression:
        return self.data("uint8_t", len(self.ports) + number)

    def data(self, ctype: str, number: int) -> CExpression:
        """Return a C expression of type `ctype *`, which points to the elements of a tensor.

        number: the index of the tensor among the arguments.
        """
        return cast(f"{ctype} *", primary(f"arguments[{number}].as.tensor->dl.data"))

    def function(self) -> list[str]:
        expected = [(port_dtype(port, self.entry), port_shape(port, self.entry)) for port in self.ports]
        if self.config.caller_provides_pools:
            expected += [("u8", (size,)) for _, size in self.pools]
        not_plain = self.fail("ARGUMENT_ERROR", "expected dense, row-major tensors on the CPU")
        body = [
            *argument_checks(expected, self.size_indices),
            *self.bool_variables(),
            "  (void)self;",
            "  if (status != RVM_OK) return status;",
            f"  if (!rvm_are_plain(arguments, count)) {not_plain}",
            *self.expect_aligned(),
            *self.check_bounds(self.size_of),
            *self.check_dims(),
        ]
        updated = self.entry.updated_inputs
        tensors = [
            self.pointer(number, self.input_numbers[number], "" if number in updated else "const ")
            for number in self.entry.inputs
        ]
        tensors += [self.pointer(number, self.output_numbers[number], "") for number in self.entry.outputs]
        scalars = [str(self.read(var, self.input_numbers[var])) for var in self.entry.scalars]
        results = [self.result(var) for var in self.entry.results]
        body.append(f"  status = {self.call(tensors, self.size_of, scalars, results)};")
        for var in self.entry.results:
            if var.dtype.is_bool:
                target = prefix("*", self.data("uint8_t", self.output_numbers[var]))
                body.append(f"  {target} = {cast('uint8_t', primary(self.variable(var)))};")
        return [f"{packed_signature(self.config)} {{", *body, "  return status;", "}"]

    def size_of(self, var: DimVar) -> CExpression:
        """Return the C expression of a size: an argument if there is one, otherwise a dimension of an input."""
        if var in self.input_numbers:
            return self.read(ScalarVar("", I64), self.input_numbers[var])
        return primary(f"sizes[{self.size_indices[var_dim(var)]}]")

    def check_dims(self) -> Iterator[str]:
        """Yield C statements that compare the dimensions of tensors with sizes that are arguments, or are computed."""
        for dim, number in self.size_indices.items():
            var = as_var(dim)
            if var is not None and var not in self.input_numbers:
                continue
            text = printf(dim_text(dim, self.size_names))
            for guard in guards_in(dim, self.size_of, size_ranges(self.entry)):
                yield f"  if ({guard}) {self.fail('SHAPE_ERROR', f'size {text}: overflow or division by 0')}"
            actual, expected = primary(f"sizes[{number}]"), dimension(dim, self.size_of)
            fail = self.fail(
                "SHAPE_ERROR", f"expected a dimension of {text}, which is %lld, got %lld", expected, actual
            )
            yield f"  if ({infix('!=', actual, expected)}) {fail}"

    def pointer(self, storage: int, number: int, const: str) -> str:
        return str(self.data(f"{const}{self.entry.storages[storage].dtype.ctype}", number))

    def read(self, var: ScalarVar, number: int) -> CExpression:
        if var.dtype.is_bool:
            return infix("!=", prefix("*", self.data("const uint8_t", number)), integer(0))
        return prefix("*", self.data(f"const {CTYPES[var.dtype]}", number))

    def variable(self, var: ScalarVar) -> str:
        return f"result{self.output_numbers[var]}"

    def bool_variables(self) -> list[str]:
        """Return C declarations of an int64 variable for each bool result of the lowered function.

        The entry point later converts these variables to the bytes that the caller expects.
        """
        return [f"  int64_t {self.variable(var)} = 0;" for var in self.entry.results if var.dtype.is_bool]

    def result(self, var: ScalarVar) -> str:
        if var.dtype.is_bool:
            return str(prefix("&", primary(self.variable(var))))
        return str(self.data(CTYPES[var.dtype], self.output_numbers[var]))

    def descriptor(self) -> str:
        name = self.config.name
        pools = len(self.pools) if self.config.caller_provides_pools else 0
        counts = f"{len(self.ports) - len(self.module.outputs)}, {len(self.module.outputs)}, {pools}"
        return f'const struct relvm_aot_packed_model {name}_model = {{"{name}", {name}_run, {counts}}};'


def _names_by_value(ports: tuple[Port, ...]) -> dict[object, str]:
    return {port.value: port.name for port in ports}
