"""Kernels with inout parameters: from updates of tensors to functions of values.

A call of a kernel with an inout parameter updates the variable that it passes.  `thread_updates` removes such calls:

- The kernel becomes a kernel that returns the new value (`kernel_def.without_inouts`).
- The variable is replaced by a new variable with the new value, wherever it is used after the call.
- The result of an `if` or a block that updates variables becomes a tuple, which also contains the new values.
- A function of the module that updates a parameter also returns the new value.  If the program calls the function, this
  is a separate private function.  The function that the host calls copies the new values to the arguments after
  everything else is computed (the builtin `update_tensor`).

All other values keep their contents, because no kernel writes to memory of an existing value.  Later passes can
therefore treat the program as a functional one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from relvm.errors import RelvmArgumentError, RelvmError, RelvmTypeError, located
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Constant,
    Expr,
    Function,
    FunctionRef,
    If,
    KernelCall,
    MatchCast,
    Module,
    String,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.kernel_def import KernelDef, copy_kernel, without_inouts
from relvm.ir.node import Node, children, map_children, walk
from relvm.ir.symbolic import dim_var
from relvm.ir.types import OBJECT, VOID, ListType, ObjectType, OptionalType, TensorType, TupleType, Type
from relvm.ir.unique_names import unique_name
from relvm.ir.visitor import AnyBinding, substitute, use_counts

Positions = Mapping[str, tuple[int, ...]]  # a kernel or function -> the positions of the arguments that it updates


def thread_updates(module: Module) -> Module:
    """Return the module without calls that update their arguments.

    Parameters
    ----------
    module
        A module at stage PARSED or TYPED.  If no kernel has an inout parameter, the result is the module itself.

    Raises
    ------
    RelvmTypeError
        An updated argument is not a variable, is a constant, or belongs to an enclosing function.  The error is also
        raised if a call that updates an argument is part of a larger expression, if a function that updates a parameter
        is declared pure or used as a value, or if the type of the parameter is not supported
        (`_Threading.check_parameters`).
    RelvmArgumentError
        A call updates the same variable twice.
    """
    definitions = {name: kernel for name, kernel in module.kernels if isinstance(kernel, KernelDef)}
    kernels = {name: kernel.inout_positions for name, kernel in definitions.items() if kernel.inout_positions}
    if not kernels:
        return module
    functions = _updating_functions(module.functions, kernels)
    _expect_called_directly(module.functions, functions)
    threading = _Threading(module, definitions, kernels, functions)
    threaded = tuple(new for function in module.functions for new in threading.module_function(function))
    changed = tuple((name, without_inouts(kernel) if name in kernels else kernel) for name, kernel in module.kernels)
    copies = tuple((kernel.name, kernel) for kernel in threading.copies.values())
    return replace(module, functions=threaded, kernels=(*changed, *copies))


def _updating_functions(functions: Sequence[Function], kernels: Positions) -> dict[str, tuple[int, ...]]:
    """Return the functions of the module that update parameters, with the positions of these parameters."""
    found: dict[str, tuple[int, ...]] = {}
    while True:
        before = dict(found)
        for function in functions:
            updated = {arg for call in walk(function) for arg in _updated_arguments(call, kernels, found)}
            if positions := tuple(i for i, param in enumerate(function.params) if param in updated):
                found[function.name] = positions
        if found == before:
            return found


def _updated_positions(value: Node, kernels: Positions, functions: Positions) -> tuple[int, ...]:
    """Return the positions of the arguments that `value` updates, or () if it is not a call that updates any."""
    match value:
        case KernelCall(name, args):
            positions = kernels.get(name, ())
        case Call(FunctionRef(name), args):
            positions = functions.get(name, ())
        case _:
            return ()
    return tuple(i for i in positions if i < len(args))


def _updated_arguments(value: Node, kernels: Positions, functions: Positions) -> tuple[Expr, ...]:
    positions = _updated_positions(value, kernels, functions)
    return tuple(value.args[i] for i in positions) if isinstance(value, KernelCall | Call) else ()


def _expect_called_directly(functions: Sequence[Function], updating: Positions) -> None:
    """Raise RelvmTypeError if a function that updates a parameter is used other than in a direct call."""
    for function in functions:
        for item in walk(function):
            called = item.callee if isinstance(item, Call) else None
            for child in children(item):
                if isinstance(child, FunctionRef) and child.name in updating and child is not called:
                    raise located(
                        RelvmTypeError(
                            f"{function.name}: {child.name} updates a parameter, so it can only be called directly, as "
                            f"in @{child.name}(x); found a use as a value"
                        ),
                        function.origin,
                    )


class _Threading:
    """Threads the new values of updated variables through the functions of a module.

    definitions: the kernels that the program defines, by name.
    kernels, functions: the positions of the arguments that each kernel and function updates.
    names: the names in use.
    value_functions: a function that updates parameters and that the program calls -> the name of the function that
    returns the new values.
    copies: the kernel that copies a tensor, for each dtype and rank that needs one.
    where, origin: the name of the current function, and the source location, for messages.
    params: the parameters of the current function of the module.
    current: an updated variable -> the variable with its newest value.
    owned: the variables that the current function may update.
    constants: the variables bound to a constant or to another such variable.
    sizes: a variable that holds a tuple of a result and new values -> the number of its items.
    passed: how often the threaded function passes each variable for an inout parameter of a kernel.
    """

    def __init__(
        self, module: Module, definitions: Mapping[str, KernelDef], kernels: Positions, functions: Positions
    ) -> None:
        self.definitions = definitions
        self.kernels = kernels
        self.functions = functions
        self.names = {*dict(module.kernels), *(function.name for function in module.functions)}
        callees = {item.callee for function in module.functions for item in walk(function) if isinstance(item, Call)}
        called = {callee.name for callee in callees if isinstance(callee, FunctionRef)}
        self.value_functions = {
            function.name: function.name if function.private else unique_name(f"{function.name}_updated", self.names)
            for function in module.functions
            if function.name in functions and (function.private or function.name in called)
        }
        self.copies: dict[tuple[str, int], KernelDef] = {}
        self.where, self.origin = "", ""
        self.params: tuple[Var, ...] = ()
        self.current: dict[Var, Var] = {}
        self.owned: set[Var] = set()
        self.constants: set[Var] = set()
        self.sizes: dict[Expr, int] = {}
        self.passed: Counter[Var] = Counter()

    def error(self, message: str, kind: type[RelvmError] = RelvmTypeError, origin: str = "") -> RelvmError:
        return located(kind(f"{self.where}: {message}"), origin or self.origin)

    def updates(self, value: Node) -> tuple[int, ...]:
        return _updated_positions(value, self.kernels, self.functions)

    def outer_nodes(self, expr: Node) -> Iterator[Node]:
        """Yield `expr` and the nodes inside it, in order, except those inside local functions."""
        waiting = [expr]
        while waiting:
            item = waiting.pop()
            yield item
            waiting += reversed([child for child in children(item) if not isinstance(child, Function)])

    def contains_updates(self, expr: Node) -> bool:
        return any(self.updates(item) for item in self.outer_nodes(expr))

    def outer_variables(self, expr: Node) -> list[Var]:
        """Return the variables that `expr` updates but does not bind: parameters in order, then others in order of
        their first update."""
        found: dict[Expr, None] = {}
        bound: set[Expr] = set()
        for item in self.outer_nodes(expr):
            found |= dict.fromkeys(_updated_arguments(item, self.kernels, self.functions))
            if isinstance(item, Binding | MatchCast):
                bound.add(item.var)
        outer = [var for var in found if isinstance(var, Var) and var not in bound]
        return [*(param for param in self.params if param in outer), *(var for var in outer if var not in self.params)]

    # ---- functions ----

    def module_function(self, function: Function) -> Iterator[Function]:
        """Yield the functions that replace `function`."""
        if not any(self.updates(item) for item in walk(function)):
            yield function
            return
        self.where, self.origin, self.params = function.name, function.origin, function.params
        self.current, self.owned, self.passed = {}, set(function.params), Counter()
        updated = [function.params[i] for i in self.functions.get(function.name, ())]
        self.check_parameters(function, updated)
        bindings: list[AnyBinding] = []
        values = self.statements(function.body, updated, bindings)
        if not updated:
            yield replace(function, body=Block(tuple(bindings), values[0]))
            return
        uses = use_counts(Block(tuple(bindings), Tuple(values)))
        shared = [param for param in updated if uses[param] > self.passed[param]]
        value_name = self.value_functions.get(function.name)
        if value_name is None:
            yield self.host_function(function, updated, shared, bindings, values)
            return
        result_type = function.result_type
        if result_type is not None:
            result_type = TupleType((result_type, *(param.type for param in updated)))
        bounds = tuple(each for each in function.attributes if each[0] in ("upper_bounds", "lower_bounds"))
        yield replace(
            function,
            name=value_name,
            body=self.finish_block(bindings, values),
            result_type=result_type,
            private=True,
            attributes=bounds,
        )
        if not function.private:
            params = tuple(replace(param) for param in function.params)
            copied = [params[function.params.index(param)] for param in shared]
            updated = [params[i] for i in self.functions[function.name]]
            whole = Var("results")
            call = Binding(whole, Call(FunctionRef(value_name), params))
            values = tuple(TupleItem(whole, i) for i in range(len(updated) + 1))
            yield self.host_function(replace(function, params=params), updated, copied, [call], values)

    def host_function(
        self,
        function: Function,
        updated: Sequence[Var],
        shared: Sequence[Var],
        bindings: Sequence[AnyBinding],
        values: Sequence[Expr],
    ) -> Function:
        """Return the function that the host calls, which writes the new values of parameters to the host's arguments.

        updated: the parameters to update.
        shared: the parameters in `updated` to whose memory other values, such as the result, can refer.  The function
        computes with copies of them.
        bindings, values: the computation of the result and of the new values of the parameters.
        """
        names = dict(zip(function.params, function.input_names, strict=True))
        checks: list[AnyBinding] = []
        for param in updated:
            others = (
                tensor for other in function.params if other is not param for tensor in _tensors(other, other.type)
            )
            where = String(f"{function.name}: argument {names[param]}")
            checks.append(_void("check_update", (param, where, *others)))
        copies = {param: Var(param.name, origins=param.origins) for param in shared}
        copying = [Binding(copy, KernelCall(self.copy_kernel(param.type), (param,))) for param, copy in copies.items()]
        computed = substitute(Block(tuple(bindings), Tuple(tuple(values))), copies)
        assert isinstance(computed.result, Tuple)
        variables = [Var("result"), *(Var(param.name, origins=param.origins) for param in updated)]
        named = [Binding(var, value) for var, value in zip(variables, computed.result.fields, strict=True)]
        stores = [_void("update_tensor", (param, var)) for param, var in zip(updated, variables[1:], strict=True)]
        body = Block((*checks, *copying, *computed.bindings, *named, *stores), variables[0])
        return replace(function, body=body)

    def check_parameters(self, function: Function, updated: Sequence[Var]) -> None:
        for param in updated:
            if function.claims_pure:
                raise self.error(f"declared as pure with ->, but parameter {param.name} is updated; use => instead")
            if not isinstance(param.type, TensorType) or param.type.dtype is None or param.type.shape is None:
                raise self.error(
                    f"parameter {param.name} is updated: expected a tensor of known dtype and shape, such as "
                    f"f32[n, m], got {param.type}; change its type",
                    origin=param.origin,
                )
            if not function.private and (param.type.dtype.is_bool or param.type.dtype.bits < 8):
                raise self.error(
                    f"parameter {param.name} is updated: expected a dtype of at least 8 bits other than bool, whose "
                    f"tensors are copied when they are passed, got {param.type.dtype}; use u8, or return the new value",
                    origin=param.origin,
                )

    def copy_kernel(self, type_: Type) -> str:
        """Return the name of the kernel that copies a tensor of `type_`."""
        assert isinstance(type_, TensorType)
        key = (type_.known_dtype.name, len(type_.known_shape))
        if key not in self.copies:
            shape = tuple(dim_var(f"d{axis}") for axis in range(key[1]))
            name = unique_name(f"copy_{key[0]}_{key[1]}d", self.names)
            self.copies[key] = copy_kernel(name, TensorType(type_.known_dtype, shape))
        return self.copies[key].name

    def local_function(self, function: Function) -> Function:
        """Return a local function that updates only variables that it binds itself."""
        if not any(self.updates(item) for item in walk(function.body)):
            return map_children(self.expr, function)
        outer = self.owned, dict(self.current), self.params
        self.owned, self.params = set(), ()
        body = self.block(function.body, ())
        self.owned, self.current, self.params = outer
        return replace(function, body=body)

    # ---- blocks and statements ----

    def block(self, body: Expr, updated: Sequence[Var]) -> Block:
        """Return a block that computes the result of `body`, and the new values of the variables `updated` if there
        are any."""
        bindings: list[AnyBinding] = []
        return self.finish_block(bindings, self.statements(body, updated, bindings))

    def finish_block(self, bindings: Sequence[AnyBinding], values: Sequence[Expr]) -> Block:
        """Return a block whose result is the only item of `values`, or a tuple of several.

        If the last bindings only take the items of this tuple from an existing tuple, the result is the existing tuple.
        A call that computes it then remains a tail call.
        """
        if len(values) == 1:
            return Block(tuple(bindings), values[0])
        items = {binding.var: binding.value for binding in bindings}
        parts = [items.get(value, value) if isinstance(value, Var) else value for value in values]
        whole = parts[0].tuple if isinstance(parts[0], TupleItem) else None
        if whole is not None and self.sizes.get(whole) == len(parts):
            is_same = all(
                isinstance(part, TupleItem) and part.tuple is whole and part.index == i for i, part in enumerate(parts)
            )
            end = next(i for i, binding in enumerate(bindings) if binding.var is whole) + 1
            if is_same and all(isinstance(binding.value, TupleItem) for binding in bindings[end:]):
                return Block(tuple(bindings[:end]), whole)
        return Block(tuple(bindings), Tuple(tuple(values)))

    def statements(self, body: Expr, updated: Sequence[Var], bindings: list[AnyBinding]) -> tuple[Expr, ...]:
        """Append the bindings of `body`, and return its result, then the values of the variables `updated` at its
        end."""
        if not isinstance(body, Block):
            body = Block((), body)
        for binding in body.bindings:
            outer, self.origin = self.origin, binding.var.origin or self.origin
            self.owned.add(binding.var)
            value = self.statement(binding.value, binding.var.origins, bindings)
            if isinstance(value, Constant) or (isinstance(value, Var) and value in self.constants):
                self.constants.add(binding.var)
            if binding.var.name != "_" or value is not _NOTHING:
                bindings.append(replace(binding, value=value))
            self.origin = outer
        result = self.statement(body.result, (body.origin,) if body.origin else (), bindings)
        return (result, *(self.current.get(var, var) for var in updated))

    def statement(self, value: Expr, origins: tuple[str, ...], bindings: list[AnyBinding]) -> Expr:
        """Return the value of a binding or the result of a block.  If it updates variables, append the calls and
        record the new values of the variables."""
        if positions := self.updates(value):
            return self.call(value, positions, origins, bindings)
        if not isinstance(value, If | Block) or not self.contains_updates(value):
            return self.expr(value)
        changed = self.outer_variables(value)
        if isinstance(value, Block):
            results = self.statements(value, changed, bindings)
            return results[0]
        cond = self.expr(value.cond)
        before = dict(self.current)
        then = self.block(value.then, changed)
        self.current = dict(before)
        orelse = self.block(value.orelse, changed)
        self.current = before
        chosen = If(cond, then, orelse)
        if not changed:
            return chosen
        whole = self.whole(chosen, len(changed) + 1, origins, bindings)
        for i, var in enumerate(changed):
            self.set_value(var, TupleItem(whole, i + 1), bindings)
        return TupleItem(whole, 0)

    def set_value(self, var: Var, value: Expr, bindings: list[AnyBinding]) -> None:
        """Bind the new value of an updated variable to a new variable."""
        self.current[var] = new = Var(var.name, origins=var.origins)
        bindings.append(Binding(new, value))

    def whole(self, value: Expr, size: int, origins: tuple[str, ...], bindings: list[AnyBinding]) -> Var:
        """Bind `value` to a new variable, and return the variable.

        `value` is a tuple of `size` items: a result, followed by the new values of updated variables.
        """
        var = Var("results", origins=origins)
        self.sizes[var] = size
        bindings.append(Binding(var, value))
        return var

    def call(
        self, call: Expr, positions: tuple[int, ...], origins: tuple[str, ...], bindings: list[AnyBinding]
    ) -> Expr:
        """Append a call that updates the arguments at `positions`, and record their new values.  Return its result."""
        assert isinstance(call, KernelCall | Call)
        changed = [self.updated_variable(call, i) for i in positions]
        if len(set(changed)) < len(changed):
            twice = next(var for var, count in Counter(changed).items() if count > 1)
            reason = f"{_callee(call)} updates {twice.name} twice; pass a different tensor for each inout parameter"
            raise self.error(reason, RelvmArgumentError)
        args = tuple(self.expr(arg) for arg in call.args)
        if isinstance(call, Call):
            assert isinstance(call.callee, FunctionRef)
            called = Call(FunctionRef(self.value_functions[call.callee.name]), args)
            whole = self.whole(called, len(changed) + 1, origins, bindings)
            for i, var in enumerate(changed):
                self.set_value(var, TupleItem(whole, i + 1), bindings)
            return TupleItem(whole, 0)
        self.passed.update(self.current.get(var, var) for var in changed)
        outputs = len(self.definitions[call.kernel].outputs)
        values = KernelCall(call.kernel, args, origins=call.origins)
        if len(changed) == 1 and not outputs:
            self.set_value(changed[0], values, bindings)
            return _NOTHING
        if call.type is not None:  # the type that the program states for the outputs
            fields = (call.type,) if outputs == 1 else call.type.fields if isinstance(call.type, TupleType) else ()
            values = replace(values, type=TupleType((*(OBJECT,) * len(changed), *fields)))
        whole = self.whole(values, len(changed) + outputs, origins, bindings)
        for i, var in enumerate(changed):
            self.set_value(var, TupleItem(whole, i), bindings)
        rest = tuple(TupleItem(whole, len(changed) + i) for i in range(outputs))
        return rest[0] if outputs == 1 else Tuple(rest)

    def updated_variable(self, call: KernelCall | Call, position: int) -> Var:
        """Return the variable that a call updates, its argument at `position`.

        Raise RelvmTypeError if this argument cannot be updated.
        """
        arg = call.args[position]
        expected = f"{_callee(call)} updates its argument {position}"
        if isinstance(call, KernelCall):
            expected = f"{_callee(call)}: inout parameter {self.definitions[call.kernel].inputs[position].name}"
        expected += ": expected a variable that holds a tensor, found"
        if not isinstance(arg, Var):
            found = "a constant" if isinstance(arg, Constant) else "an expression"
            raise self.error(f"{expected} {found}; bind a computed tensor to a variable first")
        if arg in self.constants:
            raise self.error(f"{expected} {arg.name}, which is a constant; constants cannot change")
        if arg not in self.owned:
            raise self.error(
                f"{expected} {arg.name}, which a local function gets from outside; a local function can only update "
                "tensors that it computes itself: define the function with def, and pass the tensor"
            )
        return arg

    def expr(self, expr: Expr) -> Expr:
        """Return an expression that updates no variables, with the newest values of variables."""
        if isinstance(expr, Var):
            return self.current.get(expr, expr)
        if isinstance(expr, Function):
            return self.local_function(expr)
        if self.updates(expr):
            reason = f"{_callee(expr)} updates an argument; bind the call to a variable of its own"
            raise self.error(reason)
        return map_children(self.expr, expr)


_NOTHING = Tuple(())


def _tensors(expr: Expr, type_: Type) -> Iterator[Expr]:
    """Yield the tensors in a value of `type_`, and its optionals, lists and objects, which may contain tensors."""
    match type_:
        case TupleType(fields):
            for i, field in enumerate(fields):
                yield from _tensors(TupleItem(expr, i), field)
        case TensorType() | OptionalType() | ListType() | ObjectType():
            yield expr


def _void(builtin: str, args: tuple[Expr, ...]) -> Binding:
    return Binding(Var("_", type=VOID), BuiltinCall(builtin, args, type=VOID))


def _callee(call: Expr) -> str:
    match call:
        case KernelCall(name):
            return f"kernel {name}"
        case Call(FunctionRef(name)):
            return f"function {name}"
    raise AssertionError("not a call that updates arguments")
