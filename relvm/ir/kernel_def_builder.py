"""Builder of kernel definitions, used by the front ends for text and Python."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from relvm.errors import RelvmArgumentError, RelvmNameError, RelvmTypeError, counted, near_matches
from relvm.ir import kernel_def as kd
from relvm.ir import loop_ir as ir
from relvm.ir.dtypes import I64
from relvm.ir.symbolic import AnyDim, as_var, dim_vars
from relvm.ir.types import PrimType, TensorType, Type


class KernelDefBuilder:
    """Builder of one kernel.

    dims: the dimension variables by name.  The caller adds those that occur in the types of parameters.
    buffers: the parameters by name.
    scopes: for each open block, its local variables by name, innermost block last.
    blocks: for each open block, its statements so far.
    counters: the loop counters, which cannot be assigned.
    ended: the names of variables that are out of scope, for error messages.
    """

    def __init__(self, name: str, dims: dict[str, AnyDim], origin: str = "") -> None:
        self.name = name
        self.dims = dims
        self.origin = origin
        self.buffers: dict[str, ir.Buffer] = {}
        self.scopes: list[dict[str, ir.Local]] = [{}]
        self.blocks: list[list[ir.Statement]] = [[]]
        self.counters: set[ir.Local] = set()
        self.ended: set[str] = set()

    def param(self, name: str, type_: Type, *, is_output: bool, is_inout: bool = False) -> None:
        """Add a parameter to the kernel: an output if `is_output`, otherwise an input, which the kernel updates if
        `is_inout`.

        Raises
        ------
        RelvmTypeError
            The type is neither a scalar type nor a tensor type of known dtype and shape.
        RelvmNameError
            Another parameter has the same name.
        """
        if isinstance(type_, PrimType):
            type_ = TensorType(type_.dtype, ())
        if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None or type_.dtype.is_string:
            raise RelvmTypeError(
                f"parameter {name} of a kernel: expected a tensor of known dtype and shape (f32[n, m]), got {type_}"
            )
        if name in self.buffers:
            raise RelvmNameError(f"two parameters are named {name}")
        self.buffers[name] = ir.Buffer(name, type_.dtype, type_.shape, is_output, is_inout)

    def check_dims(self) -> None:
        """Check that each dimension variable is the size of an axis of a parameter.

        The arguments of a call then determine the value of the variable.

        Raises
        ------
        RelvmNameError
            A dimension variable occurs only in compound sizes: `n` occurs in `n + 1`, but no axis has the size `n`.
        """
        dims = [dim for buffer in self.buffers.values() for dim in buffer.shape]
        plain = {as_var(dim) for dim in dims}
        for dim in dims:
            for var in dim_vars(dim):
                if var not in plain:
                    raise RelvmNameError(f"kernel {self.name}: no axis of a parameter has exactly the size {var.name}")

    # ---- names ----

    def find(self, name: str) -> ir.Local | ir.Buffer | ir.Size | None:
        """Return the variable called `name`, otherwise the parameter, otherwise the dimension of that name.

        Return None if there is none.
        """
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in self.buffers:
            return self.buffers[name]
        return ir.Size(self.dims[name]) if name in self.dims else None

    def unknown(self, name: str) -> RelvmNameError:
        if name in self.ended:
            return RelvmNameError(f"{name} is defined only in a block that has ended; define it before that block")
        known = {*self.buffers, *self.dims, *(name for scope in self.scopes for name in scope)}
        return RelvmNameError(f"no variable, parameter or dimension {name}{near_matches(name, known)}")

    def value(self, name: str, origin: str = "") -> ir.Scalar:
        """Return the scalar called `name`.  If it is a parameter of rank 0, return the only element of the
        parameter."""
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        if isinstance(found, ir.Buffer):
            if found.shape:
                axes = ", ".join(f"i{axis}" for axis in range(len(found.shape)))
                raise RelvmTypeError(f"{name} is a tensor; expected an element of it, {name}[{axes}]")
            return ir.Load(found, (), origin)
        return found

    def buffer(self, name: str) -> ir.Buffer:
        found = self.find(name)
        if found is None:
            raise self.unknown(name)
        if not isinstance(found, ir.Buffer):
            raise RelvmTypeError(f"{name} is a scalar and has no elements")
        return found

    def element(self, name: str, indices: tuple[kd.Operand, ...], origin: str = "") -> ir.Load:
        buffer = self.buffer(name)
        return ir.Load(buffer, self._indices(buffer, indices), origin)

    def _indices(self, buffer: ir.Buffer, indices: tuple[kd.Operand, ...]) -> tuple[ir.Scalar, ...]:
        if len(indices) != len(buffer.shape):
            raise RelvmArgumentError(
                f"{buffer.name} has rank {len(buffer.shape)}, got {counted(len(indices), 'index')}"
            )
        return tuple(map(kd.as_index, indices))

    def _new(self, name: str) -> None:
        if isinstance(self.find(name), ir.Local | ir.Buffer):
            raise RelvmNameError(f"{name} is defined twice; use another name")

    # ---- statements ----

    def add(self, statement: ir.Statement) -> None:
        self.blocks[-1].append(statement)

    def let(self, name: str, value: kd.Operand) -> None:
        self._new(name)
        scalar = kd.as_scalar(value)
        self.scopes[-1][name] = variable = ir.Local(name, scalar.dtype)
        self.add(ir.Let(variable, scalar))

    def assign(self, name: str, value: kd.Operand, origin: str = "") -> None:
        variable = self.find(name)
        if variable is None:
            raise self.unknown(name)
        if not isinstance(variable, ir.Local) or variable in self.counters:
            what = "a loop counter" if isinstance(variable, ir.Local) else "a parameter or dimension"
            raise RelvmTypeError(f"{name} is {what}, which cannot be assigned")
        scalar = kd.as_scalar(value, variable.dtype)
        if scalar.dtype != variable.dtype:
            raise RelvmTypeError(
                f"{name} has dtype {variable.dtype}, got {scalar.dtype}; convert the value: {variable.dtype}(x)"
            )
        self.add(ir.Assign(variable, scalar, origin))

    def put(self, name: str, indices: tuple[kd.Operand, ...], value: kd.Operand, origin: str = "") -> None:
        buffer = self.buffer(name)
        if not (buffer.is_output or buffer.is_inout):
            raise RelvmTypeError(f"{name} is an input, which cannot be written; to update it, declare it inout")
        at, scalar = self._indices(buffer, indices), kd.as_scalar(value, buffer.dtype)
        if scalar.dtype != buffer.dtype:
            raise RelvmTypeError(
                f"{name} has dtype {buffer.dtype}, got {scalar.dtype}; convert the value: {buffer.dtype}(x)"
            )
        self.add(ir.Store(buffer, at, scalar, origin))

    @contextmanager
    def block(self) -> Iterator[list[ir.Statement]]:
        """A context manager that opens a block, and yields the list of the statements in the block."""
        self.scopes.append({})
        self.blocks.append([])
        yield self.blocks[-1]
        self.blocks.pop()
        self.ended |= self.scopes.pop().keys()

    @contextmanager
    def loop(self, counter: str, start: kd.Operand, stop: kd.Operand, kind: str, origin: str = "") -> Iterator[None]:
        """A context manager that opens a loop.  The statements added in the `with` block are the body of the loop.

        counter: the name of the loop counter.
        kind: one of LOOPS.
        """
        assert kind in kd.LOOPS
        first, last = kd.as_index(start), kd.as_index(stop)
        self._new(counter)
        variable = ir.Local(counter, I64)
        self.counters.add(variable)
        with self.block() as body:
            self.scopes[-1][counter] = variable
            yield
        statements = tuple(map(_ignore_nan_operand, body)) if kind == "simd" else tuple(body)
        self.add(ir.Loop(variable, first, last, statements, kind, origin=origin))

    def finish(self) -> kd.KernelDef:
        """Return the kernel.

        Raises
        ------
        RelvmTypeError
            The kernel has no parameter that it writes, or never writes an output or inout parameter.
        """
        outputs = tuple(buffer for buffer in self.buffers.values() if buffer.is_output)
        inputs = tuple(buffer for buffer in self.buffers.values() if not buffer.is_output)
        updated = tuple(buffer for buffer in inputs if buffer.is_inout)
        if not outputs and not updated:
            raise RelvmTypeError(f"kernel {self.name} has no output, that is, no parameter that it writes")
        body = tuple(self.blocks[0])
        written = {item.buffer for item in ir.statements_in(body) if isinstance(item, ir.Store)}
        for buffer in (*updated, *outputs):
            if buffer not in written:
                role = "inout parameter" if buffer.is_inout else "output"
                raise RelvmTypeError(f"kernel {self.name} never writes its {role} {buffer.name}")
        return kd.KernelDef(self.name, inputs, outputs, body, self.origin)


def _ignore_nan_operand(statement: ir.Statement) -> ir.Statement:
    """Rewrite a statement `x = max(x, y)` of a `simd` loop to `x = max(y, x)`, which leaves x unchanged if y is NaN.

    Rewrite `min` in the same way.  Return any other statement unchanged.
    """
    match statement:
        case ir.Assign(variable, ir.Operation("max" | "min", (first, second)) as value) if first is variable:
            return replace(statement, value=replace(value, operands=(second, first)))
    return statement
