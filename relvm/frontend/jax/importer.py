"""Import of a jaxpr as a module.

An equation whose parameters contain jaxprs, such as `scan`, has a converter (relvm/frontend/jax/equations.py).  JAX
lowers the others to StableHLO (relvm/frontend/jax/leaves.py), and the converters of StableHLO import them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import relvm.ops as ops
from relvm.errors import RelvmError, RelvmUnsupportedError, shortened
from relvm.frontend.common.control_flow import as_result
from relvm.frontend.common.problems import expect_no_problems
from relvm.frontend.jax.avals import constant_of
from relvm.frontend.jax.context import JaxprContext
from relvm.frontend.jax.equations import REFUSED, converter_for
from relvm.frontend.jax.leaves import Lowered, Slice, equations_in, inner_jaxprs, is_leaf, key_of
from relvm.frontend.jax.requirements import import_jax
from relvm.frontend.jax.sizes import ParameterSizes
from relvm.frontend.stablehlo.importer import Unimported, identifier, reachable_functions
from relvm.frontend.stablehlo.program import Operation, Value
from relvm.ir.dtypes import I32, I64
from relvm.ir.expr import Attributes, DimValue, Expr, Module, Shape, Var
from relvm.ir.relate_sizes import make_claim_check
from relvm.ir.symbolic import AnyDim
from relvm.ir.types import ShapeType, TensorType

_SOURCE = re.compile(r"(\S+):(\d+):(\d+)")


class JaxprImporter(JaxprContext):
    """The import of one jaxpr.

    place: the name of the function, for messages.
    lowered: the equations that JAX has lowered.
    """

    def __init__(self, place: str, lowered: Lowered, dims: dict[str, AnyDim]) -> None:
        super().__init__(lowered.program, dims)
        self.lowered = lowered
        self._equation: Any = None
        self._constants: dict[tuple[int, Any], tuple[Any, Expr]] = {}  # the id of a value -> the value, the constant
        self._jaxprs: dict[int, str] = {}  # the id of a jaxpr -> its function

    def import_main(
        self, jaxpr: Any, names: Sequence[str], sizes: ParameterSizes, name: str, attributes: Attributes
    ) -> Module:
        """Import a closed jaxpr as the public function `name`, and return the module.

        names, sizes: the names and the symbolic sizes of the parameters.
        """
        self.unique_name(name)
        functions = list(self.program.functions.values())
        used = [each for each in functions if any(True for _ in each.body.operations)]
        self.import_functions(reachable_functions(self.program, used), ())
        parameters = list(zip(names, sizes.types, strict=True))
        with self.builder.function(name, parameters, attributes=attributes) as variables:
            for dim, value in sizes.definitions:
                self.builder.match_cast(Shape((value,)), ShapeType((dim,)), "sizes")
            for claim in sizes.claims:
                if claim.needs_check():
                    self.builder.emit(make_claim_check(claim, claim.message).value)
            arguments = [
                self._argument(variable, var.aval, f"{name}: argument {variable.name}")
                for variable, var in zip(variables, jaxpr.jaxpr.invars, strict=True)
            ]
            try:
                self.builder.ret(as_result(self.inline(jaxpr, arguments)))
            except Unimported:
                self.builder.ret(0)
        expect_no_problems(self.program.place, self.problems, "equations")
        return self.builder.module()

    def _argument(self, variable: Var, aval: Any, where: str) -> Expr:
        """Return a parameter with the sizes of its type in JAX.   where: the beginning of messages about its sizes."""
        type_ = self.type_of_value(aval)
        if variable.type == type_ or not isinstance(type_, TensorType):
            return self.with_type(variable, type_)
        return self.builder.match_cast(variable, type_, where=f"{where} of shape [{', '.join(map(str, aval.shape))}]")

    # ---- jaxprs ----

    def inline(self, jaxpr: Any, operands: Sequence[Expr]) -> list[Expr]:
        consts = getattr(jaxpr, "consts", ())
        jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        env: dict[Any, Expr] = dict(zip(jaxpr.invars, operands, strict=True))
        for var, value in zip(jaxpr.constvars, consts, strict=True):
            env[var] = self._constant(value, var.aval)
        for equation in jaxpr.eqns:
            try:
                args = [self._read(each, env) for each in equation.invars]
            except Unimported:
                self._record_refused_equations(equation)
                continue
            for var, result in zip(equation.outvars, self._results(equation, args), strict=False):
                env[var] = result
        return [self._read(each, env) for each in jaxpr.outvars]

    def call_jaxpr(self, name: str, jaxpr: Any, operands: Sequence[Expr]) -> list[Expr]:
        inner = getattr(jaxpr, "jaxpr", jaxpr)
        count = len(inner.outvars)
        if not count:
            return []
        if self.dims or self.inlines_all:
            return self.inline(jaxpr, operands)
        if id(inner) not in self._jaxprs:
            function = self.unique_name(identifier(name, "function"))
            params = [(f"x{i}", self.type_of_value(var.aval)) for i, var in enumerate(inner.invars)]
            before = self.builder.place, self._equation
            with self.builder.function(function, params, private=True) as variables:
                self.builder.ret(as_result(self.inline(jaxpr, variables)))
            self.builder.place, self._equation = before
            self._jaxprs[id(inner)] = function
        return self.results(self.builder.call(self._jaxprs[id(inner)], *operands), count)

    def _read(self, atom: Any, env: dict[Any, Expr]) -> Expr:
        if hasattr(atom, "val"):
            return self._constant(atom.val, atom.aval)
        if atom not in env:
            raise Unimported
        return env[atom]

    def _constant(self, value: Any, aval: Any) -> Expr:
        key = id(value), aval.dtype
        if key not in self._constants:
            self._constants[key] = value, constant_of(value, aval)
        return self._constants[key][1]

    # ---- equations ----

    def _results(self, equation: Any, args: list[Expr]) -> list[Expr]:
        """Return the results of an equation.  Return an empty list if the equation could not be imported."""
        before = self.builder.place, self._equation
        self.builder.place, self._equation = _source(equation), equation
        try:
            return self._convert_equation(equation, args)
        except Unimported:
            return []
        except RelvmUnsupportedError as error:
            self.problems[f"{self._here()}: {error}"] = None
            return []
        except RelvmError as error:
            if str(error).startswith(self.program.place):
                raise
            raise type(error)(f"{self._here()}: {error}") from error
        finally:
            self.builder.place, self._equation = before

    def _convert_equation(self, equation: Any, args: list[Expr]) -> list[Expr]:
        found = self._slice(equation)
        if found is None:
            convert = converter_for(equation.primitive.name)
            assert convert is not None
            return convert(self, equation, args)
        values: dict[Value, Expr] = dict(zip(found.parameters, args, strict=True))
        for size, value in found.sizes.items():
            values[value] = self._size(size)
            self.symbolic.know(values[value], (self.dims[size],))
        for operation in found.operations:
            self.import_operation(operation, values)
        results = [self.lookup(result, values) for result in found.results]
        if not self.dims:
            return results
        types = [self.type_of_value(var.aval) for var in equation.outvars]
        return [self.with_type(*each) for each in zip(results, types, strict=True)]

    def _slice(self, equation: Any) -> Slice | None:
        """Return the operations to which JAX has lowered an equation, or None if the equation has a converter.

        Raises
        ------
        RelvmUnsupportedError
            relvm or JAX does not support the primitive.
        """
        name = equation.primitive.name
        if name in REFUSED:
            raise RelvmUnsupportedError(REFUSED[name])
        if not is_leaf(equation):
            return None
        key = key_of(equation)
        if key in self.lowered.failures:
            raise RelvmUnsupportedError(f"JAX cannot lower it: {shortened(self.lowered.failures[key], 300)}")
        return self.lowered.slices[key]

    def _record_refused_equations(self, equation: Any) -> None:
        """Record which equations are not supported whatever their operands are: this one, and those in its jaxprs."""
        before = self._equation
        nested = (each for jaxpr in inner_jaxprs(equation) for each in equations_in(jaxpr))
        for each in (equation, *nested):
            self._equation = each
            try:
                found = self._slice(each)
            except RelvmUnsupportedError as error:
                self.problems[f"{self._here()}: {error}"] = None
                continue
            for operation in found.operations if found else ():
                self.record_refusals(operation)
        self._equation = before

    def _size(self, name: str) -> Expr:
        """Return the value of a symbolic dimension as a tensor."""
        jax = import_jax("from_jax")
        dtype = I64 if jax.config.jax_enable_x64 else I32
        return self.builder.emit(ops.to_tensor(DimValue(self.dims[name]), dtype=dtype.name), name)

    # ---- messages ----

    def _here(self) -> str:
        """Return the program, the source line and the primitive of the current equation."""
        line = _source(self._equation)
        return ": ".join((self.program.place, *([line] if line else []), self._equation.primitive.name))

    def description(self, operation: Operation) -> str:
        return super().description(operation) if self._equation is None else f"{self._here()}: {operation.name}"

    def origin(self, operation: Operation) -> str:
        return super().origin(operation) if self._equation is None else self.builder.place or ""


def _source(equation: Any) -> str:
    """Return the line of the Python program that made an equation, as FILE:LINE:COLUMN, or "" if it is not known."""
    import jax.extend.source_info_util as source_info

    found = _SOURCE.search(source_info.summarize(equation.source_info))
    return found[0] if found else ""
