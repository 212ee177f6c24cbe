"""Unboxing: keep tensors of rank 0 as scalars where a program computes with them as such."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import replace

import relvm.ops as ops
from relvm.data_classes import value_record
from relvm.directed_graph import DirectedGraph
from relvm.ir.dtypes import BOOL, F32, F64, I64
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    MatchCast,
    Module,
    OpCall,
    Prim,
    PrimCall,
    Var,
    is_atom,
)
from relvm.ir.node import Node, children, map_children, walk
from relvm.ir.types import PrimType
from relvm.ir.verifier import Stage
from relvm.ir.visitor import inner_blocks, with_bindings, with_value
from relvm.kernels.lowering_rules import Builtin, CustomKernel, Reinterpret
from relvm.passes.dce import dce
from relvm.passes.pass_manager import module_pass
from relvm.passes.util.call_analysis import find_proven_functions
from relvm.passes.util.scalar_arithmetic import (
    element_position,
    is_translatable,
    translate,
    unboxed_constant,
    unboxed_dtype,
)


@module_pass("unbox_scalars", at=Stage.ANF, optional=True)
def unbox_scalars(module: Module) -> Module:
    """Compute with unboxed scalars instead of tensors of rank 0:

    j: i32[] = add(i, const(i32[], 1))      ->   j: i64 = prim.i32(i + 1)            i: i64, a parameter
    c: bool[] = less(j, const(i32[], 10))        c: bool = j < 10
    y = if c then ...                            y = if c then ...

    A tensor is unboxed if it is computed from scalars and other unboxed tensors, and if its value is needed as a
    scalar or as the argument of a kernel: as the condition of an `if`, as an operand of another unboxed tensor, or as
    the argument of a loop.  Where a kernel or a result needs the tensor, it is created from the scalar.  Elements of
    tensors at constant positions are read without a kernel.

    A parameter of a private function is unboxed if its recursive calls pass unboxed arguments.  So the loop that the
    function represents creates no tensors for it.  All results have the same bits as without the pass, except for the
    sign and the payload of NaN.
    """
    if not any(isinstance(item, If) for function in module.functions for item in walk(function.body)):
        return module
    analysis = _Analysis(module)
    unboxed = analysis.unboxed()
    if not unboxed:
        return module
    functions = {function.name: function for function in module.functions}
    rewriter = _Rewriter(unboxed, analysis.definitions, functions)
    return dce(module.with_functions(tuple(map(rewriter.function, module.functions))))


@value_record
class _Param:
    """The definition of a parameter.

    function: the name of the function.
    recursive: the arguments for this parameter in recursive calls: those whose caller is in a cycle of calls with the
    function.
    other: the arguments for this parameter in all other calls.
    """

    function: str
    recursive: tuple[Expr, ...]
    other: tuple[Expr, ...]


# How a value is needed.  A value that only kernels need is unboxed only if its operands are scalars anyway.
_BY_KERNELS, _AS_SCALAR = 1, 2


class _Analysis:
    """Finds the tensors of a module to unbox.

    definitions: the value of each variable that a binding defines.
    params: the definition of each parameter that can be unboxed.
    candidates: the variables that could be unboxed, in the order of the program.
    roots: a variable -> _BY_KERNELS or _AS_SCALAR, the strongest need of all uses outside of candidates.
    views: the variable of a view -> the variable of the tensor whose memory it shares.
    """

    def __init__(self, module: Module) -> None:
        self.definitions: dict[Var, Expr] = {}
        self.params: dict[Var, _Param] = {}
        self.candidates: list[Var] = []
        self.roots: dict[Var, int] = {}
        self.views: dict[Var, Var] = {}
        self.arguments: dict[str, list[tuple[str, tuple[Expr, ...]]]] = defaultdict(list)
        self.eligible = find_proven_functions(module)
        for function in module.functions:
            self._params_of(function)
            self._block(function.block, function.name)
            self._need(function.block.result, _BY_KERNELS)
        self._connect_params(module)
        self.operands = {var: self._operands(var) for var in self.candidates}

    def unboxed(self) -> set[Var]:
        """Return the variables to unbox."""
        chosen = set(self.candidates)
        while True:
            needs = self._needs(chosen)
            found = self._available({var for var in chosen if var in needs}, needs)
            if len(found) == len(chosen):
                return found
            chosen = found

    # ---- definitions and uses ----

    def _params_of(self, function: Function) -> None:
        if function.name in self.eligible:
            for param in function.params:
                if unboxed_dtype(param.type):
                    self.params[param] = _Param(function.name, (), ())
                    self.candidates.append(param)

    def _connect_params(self, module: Module) -> None:
        """Record in `params` the arguments that calls pass for each parameter."""
        graph = DirectedGraph[str](function.name for function in module.functions)
        for callee, calls in self.arguments.items():
            for caller, _ in calls:
                graph.add_edge(caller, callee)
        component = {name: number for number, names in enumerate(graph.components()) for name in names}
        for function in module.functions:
            calls = self.arguments[function.name]
            for i, param in enumerate(function.params):
                if param in self.params:
                    is_inner = [component[caller] == component[function.name] for caller, _ in calls]
                    passed = [args[i] for _, args in calls]
                    inner = tuple(arg for arg, inside in zip(passed, is_inner, strict=True) if inside)
                    outer = tuple(arg for arg, inside in zip(passed, is_inner, strict=True) if not inside)
                    self.params[param] = _Param(function.name, inner, outer)

    def _block(self, block: Block, function: str) -> None:
        for binding in block.bindings:
            var, value = binding.var, binding.value
            if isinstance(binding, Binding):
                self.definitions[var] = value
                for inner in inner_blocks(value):
                    self._block(inner, function)
                if unboxed_dtype(var.type) and self._is_candidate(value):
                    self.candidates.append(var)
                elif isinstance(value, If):
                    for inner in inner_blocks(value):
                        self._need(inner.result, _BY_KERNELS)
            if isinstance(value, OpCall) and isinstance(value.op.lower, Reinterpret) and isinstance(value.args[0], Var):
                self.views[var] = value.args[0]
            self._uses(value, function, is_candidate=bool(self.candidates) and self.candidates[-1] is var)

    def _is_candidate(self, value: Expr) -> bool:
        match value:
            case OpCall(op=op, args=args):
                if op is ops.to_tensor:
                    source = args[0].known_element_type
                    return value.tensor_type.dtype in (BOOL, I64, F64) or (value.element_type, source) == (F32, F64)
                return is_translatable(value) or element_position(value, self.definitions) is not None
            case If() | Var() | Constant():
                return True
        return False

    def _uses(self, value: Expr, function: str, *, is_candidate: bool) -> None:
        """Record in `roots` how `value` needs the variables that it uses.

        is_candidate: whether `value` could be unboxed.  Its operands are then needed only if it is unboxed, so they are
        not recorded here.
        """
        match value:
            case If(cond=cond):
                self._need(cond, _AS_SCALAR)
            case Call(callee=FunctionRef(name), args=args) if name in self.eligible:
                self.arguments[name].append((function, args))
            case OpCall(op=ops.to_scalar, args=(x,)):
                self._need(x, _AS_SCALAR)
            case OpCall(op=op, args=args):
                if not is_candidate and isinstance(op.lower, CustomKernel | Builtin):
                    for arg in args:
                        self._need(arg, _BY_KERNELS)
            case Var():
                pass
            case _ if not is_candidate:
                for item in children(value):
                    self._need(item, _BY_KERNELS)

    def _need(self, item: Node, how: int) -> None:
        if isinstance(item, Var):
            self.roots[item] = max(how, self.roots.get(item, 0))

    def _operands(self, var: Var) -> tuple[Expr, ...]:
        """Return the tensors from which an unboxed variable is computed."""
        value = self.definitions.get(var)
        match value:
            case OpCall(op=op, args=args):  # to_tensor, the element of a tensor, or an operator to translate
                return () if op in (ops.to_tensor, ops.reshape) else args
            case If(then=Block(result=then), orelse=Block(result=orelse)):
                return (then, orelse)
            case Var():
                return (value,)
        param = self.params.get(var)
        return (*param.recursive, *param.other) if param else ()

    # ---- fixed points ----

    def _needs(self, chosen: Collection[Var]) -> dict[Var, int]:
        """Return how each variable is needed (_BY_KERNELS or _AS_SCALAR) if the variables `chosen` are unboxed."""
        needs: dict[Var, int] = {}
        waiting: list[tuple[Var, int]] = []
        for var, how in self.roots.items():
            while how == _BY_KERNELS and var in self.views:
                var = self.views[var]
            if how == _AS_SCALAR or self._is_computed(var):
                waiting.append((var, how))
        while waiting:
            var, how = waiting.pop()
            if needs.get(var, 0) >= how:
                continue
            needs[var] = how
            if var in chosen:
                waiting += ((each, how) for each in self.operands[var] if isinstance(each, Var))
        return needs

    def _is_computed(self, var: Var) -> bool:
        """Return whether a kernel or an `if` must compute a tensor.

        Other tensors exist without a computation, such as parameters, or are made from a scalar by `to_tensor`.
        """
        value = self.definitions.get(var)
        return isinstance(value, If) or (isinstance(value, OpCall) and value.op is not ops.to_tensor)

    def _available(self, chosen: set[Var], needs: dict[Var, int]) -> set[Var]:
        """Return the largest subset of `chosen` that can be computed from scalars."""
        found = dict.fromkeys(var for var in self.candidates if var in chosen)
        ordered = list(found)
        while True:
            # In the order of the program, so that a variable is lost in the same round as its operands.
            for var in ordered:
                if not self._is_computable(var, found, needs[var]):
                    del found[var]
            if len(found) == len(ordered):
                return set(found)
            ordered = list(found)

    def _is_computable(self, var: Var, unboxed: Collection[Var], need: int) -> bool:
        def is_scalar(expr: Expr) -> bool:
            return expr in unboxed or isinstance(expr, Constant)

        value = self.definitions.get(var)
        match value:
            case OpCall(op=ops.to_tensor):
                return True
            case OpCall(args=args) as call:
                if not self.operands[var]:
                    return need == _AS_SCALAR and element_position(call, self.definitions) is not None
                computed = [arg for arg in args if not isinstance(arg, Constant)]
                count = sum(map(is_scalar, computed))
                return count == len(computed) or (need == _AS_SCALAR and count > 0)
            case None:
                param = self.params[var]
                return all(map(is_scalar, param.recursive or param.other))
        return all(map(is_scalar, self.operands[var]))


@value_record
class _Known:
    """Conversions that are available in a block.

    boxed: an unboxed variable -> the tensor created from it.
    read: a tensor that is not unboxed -> the scalar variable that contains its element.
    """

    boxed: dict[Var, Var]
    read: dict[Var, Var]

    def copy(self) -> _Known:
        return _Known(dict(self.boxed), dict(self.read))


class _Rewriter:
    """Replaces variables by scalars.

    unboxed: the variables to replace.
    scalars: a replaced variable -> the scalar that replaces it, an atom.  Besides the variables in `unboxed`, results
    of `to_scalar` are replaced.
    elements: the variable of a slice with one element -> the variables in `unboxed` that are reshapes of this slice.
    Their element is read where the slice is computed, so that the sliced tensor is not needed longer than before.
    """

    def __init__(self, unboxed: set[Var], definitions: dict[Var, Expr], functions: dict[str, Function]) -> None:
        self.unboxed, self.definitions, self.functions = unboxed, definitions, functions
        self.scalars: dict[Var, Expr] = {}
        self.elements: dict[Var, list[Var]] = defaultdict(list)
        for var in unboxed:
            match definitions.get(var):
                case OpCall(op=ops.reshape, args=(Var() as x, _)):
                    self.elements[x].append(var)
        self.params = {
            param: self._scalar_var(param)
            for function in functions.values()
            for param in function.params
            if param in unboxed
        }

    def function(self, function: Function) -> Function:
        params = tuple(self.params.get(param, param) for param in function.params)
        body = self.block(function.block, _Known({}, {}))
        if params == function.params:
            return replace(function, body=body)
        changed = replace(function, params=params, body=body)
        return replace(changed, type=changed.func_type)

    def block(self, block: Block, outside: _Known, *, is_scalar: bool = False) -> Block:
        """Return `block` with unboxed variables replaced by scalars.

        outside: the conversions that are available before the block.
        is_scalar: whether the result of the block is unboxed.
        """
        known = outside.copy()
        bindings: list[Binding | MatchCast] = []
        for binding in block.bindings:
            self.binding(binding, known, bindings)
        convert = self.as_scalar if is_scalar else self.as_value
        result = convert(block.result, known, bindings)
        return replace(with_bindings(block, bindings, result), type=result.type)

    def binding(self, binding: Binding | MatchCast, known: _Known, bindings: list[Binding | MatchCast]) -> None:
        var, value = binding.var, binding.value
        if isinstance(value, OpCall) and value.op is ops.slice:
            for element in self.elements.get(var, ()):
                self.element(element, known, bindings)
        if var in self.unboxed and isinstance(binding, Binding):
            self.unboxed_binding(binding, known, bindings)
            return
        match value:
            case OpCall(op=ops.to_scalar, args=(x,)) if x in self.unboxed or (
                isinstance(x, Constant) and unboxed_dtype(x.type)
            ):
                self.scalars[var] = self.as_scalar(x, known, bindings)
                return
            case If(cond=cond):
                value = self.conditional(value, cond, known, bindings, is_scalar=False)
            case Call(callee=FunctionRef(name) as callee, args=args) if name in self.functions:
                value = self.call(value, callee, args, known, bindings)
            case _ if is_atom(value):
                value = self.as_value(value, known, bindings)
            case _:
                value = map_children(lambda item: self.as_value(item, known, bindings), value)
        bindings.append(with_value(binding, value))

    def unboxed_binding(self, binding: Binding, known: _Known, bindings: list[Binding | MatchCast]) -> None:
        var, value = binding.var, binding.value
        match value:
            case OpCall(op=ops.to_tensor, args=(scalar,)):
                self.scalars[var] = self.converted(var, self.as_value(scalar, known, bindings), bindings)
            case OpCall(op=ops.reshape):
                if var not in self.scalars:
                    self.element(var, known, bindings)
            case OpCall(args=args):
                scalars = [self.as_scalar(arg, known, bindings) for arg in args]
                computed: list[Binding] = []
                self.scalars[var] = translate(value, scalars, var, computed)
                bindings += computed
            case If(cond=cond):
                value = self.conditional(value, cond, known, bindings, is_scalar=True)
                bindings.append(Binding(self._scalar_var(var), value))
            case _:
                self.scalars[var] = self.as_scalar(value, known, bindings)

    def element(self, var: Var, known: _Known, bindings: list[Binding | MatchCast]) -> None:
        """Append a binding that reads the value of the unboxed variable `var`, an element of a tensor, as a scalar."""
        value = self.definitions[var]
        assert isinstance(value, OpCall)
        found = element_position(value, self.definitions)
        assert found is not None
        tensor, position = found
        read = ops.element_at(self.as_value(tensor, known, bindings), Prim(position, I64))
        bindings.append(Binding(self._scalar_var(var), read))

    def conditional(
        self, value: If, cond: Expr, known: _Known, bindings: list[Binding | MatchCast], *, is_scalar: bool
    ) -> If:
        if cond in self.unboxed or cond in self.scalars:
            cond = self.as_scalar(cond, known, bindings)
        blocks = [self.block(part, known, is_scalar=is_scalar) for part in inner_blocks(value)]
        type_ = blocks[0].type if is_scalar else value.type
        then, orelse = blocks
        return If(cond, then, orelse, type=PrimType(type_.dtype) if isinstance(type_, PrimType) else type_)

    def call(
        self,
        value: Call,
        callee: FunctionRef,
        args: Iterable[Expr],
        known: _Known,
        bindings: list[Binding | MatchCast],
    ) -> Call:
        function = self.functions[callee.name]
        passed = []
        for param, arg in zip(function.params, args, strict=True):
            convert = self.as_scalar if param in self.unboxed else self.as_value
            passed.append(convert(arg, known, bindings))
        if any(param in self.unboxed for param in function.params):
            params = tuple(self.scalars.get(param, param).type for param in function.params)
            callee = replace(callee, type=replace(function.func_type, params=params))
        return replace(value, callee=callee, args=tuple(passed))

    # ---- conversions ----

    def converted(self, var: Var, scalar: Expr, bindings: list[Binding | MatchCast]) -> Expr:
        """Convert `scalar`, the argument of `to_tensor`, to the scalar that represents the resulting tensor.

        var: the variable of the tensor, whose dtype determines the conversion.
        """
        dtype = var.tensor_type.dtype
        if dtype is not None and dtype.is_float and scalar.element_type == I64:
            scalar = self.emit(var, PrimCall("f64", (scalar,), type=PrimType(F64)), bindings)
        if dtype == F32:
            scalar = self.emit(var, PrimCall("f32", (scalar,), type=PrimType(F64)), bindings)
        return scalar

    def as_scalar(self, atom: Expr, known: _Known, bindings: list[Binding | MatchCast]) -> Expr:
        """Return the scalar that represents `atom`, a tensor of rank 0.  If it is not unboxed, read its element."""
        if isinstance(atom, Constant):
            return unboxed_constant(atom.value)
        assert isinstance(atom, Var)
        if atom in self.scalars:
            return self.scalars[atom]
        if atom not in known.read:
            known.read[atom] = self.emit(atom, ops.to_scalar(atom), bindings)
        return known.read[atom]

    def as_value(self, atom: Expr, known: _Known, bindings: list[Binding | MatchCast]) -> Expr:
        """Return `atom` in the form that the original program uses: an unboxed variable becomes a tensor again."""
        if not isinstance(atom, Var) or atom not in self.scalars:
            return atom
        if atom not in self.unboxed:
            return self.scalars[atom]
        if atom not in known.boxed:
            made = Var(atom.name, type=atom.type, origins=atom.origins)
            dtype = atom.tensor_type.known_dtype
            bindings.append(Binding(made, ops.to_tensor(self.scalars[atom], dtype=dtype.name)))
            known.boxed[atom] = made
        return known.boxed[atom]

    def emit(self, var: Var, value: Expr, bindings: list[Binding | MatchCast]) -> Var:
        bound = Var(var.name, type=value.type, origins=var.origins)
        bindings.append(Binding(bound, value))
        return bound

    def _scalar_var(self, var: Var) -> Var:
        dtype = unboxed_dtype(var.type)
        assert dtype is not None
        scalar = Var(var.name, type=PrimType(dtype), origins=var.origins)
        self.scalars[var] = scalar
        return scalar
