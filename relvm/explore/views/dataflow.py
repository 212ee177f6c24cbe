"""Dataflow graphs of functions, as charts and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from relvm.errors import RelvmArgumentError
from relvm.explore.draw.graph import Arrow, Graph, Item, collapsed, format_graph
from relvm.explore.draw.graph_figure import draw_graph
from relvm.explore.stages.select import function_name, module_at
from relvm.ir.expr import (
    Binding,
    Block,
    BuiltinCall,
    Call,
    Expr,
    Function,
    FunctionRef,
    Fused,
    If,
    MatchCast,
    Module,
    OpCall,
    PackedCall,
    PrimCall,
    Tuple,
    TupleItem,
    Var,
)
from relvm.ir.node import walk
from relvm.ir.printer import print_expr, printed_names
from relvm.ir.types import format_type
from relvm.ir.verifier import Stage
from relvm.quoting import terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_LETTERS = 40  # longer types and descriptions are cut


def draw_dataflow(
    module: Module,
    function: str | None = None,
    *,
    depth: int | None = None,
    target: str = "c",
    fused: bool = True,
) -> Figure:
    """Draw the dataflow graph of a function just before it is lowered to kernels.

    A node is a parameter, a binding, or the function's result.  Arrows lead from a value to the values computed from
    it.  Operators fused into one kernel are in a green box.  An `if` is a box with one box for each branch.  Constants
    are omitted.  Variables have the names that `relvm show` prints at this stage.  For target "c", this is the stage
    after the pass share_kernels.

    Parameters
    ----------
    module
        The module from a front end.
    function
        Name of the function, by default the first public one.
    depth
        Number of levels of open boxes.  A closed box is one node, so that 0 shows one node for each kernel.  The
        default opens all boxes.
    target, fused
        As for `vm.build`; target: "c", "bytecode" or "numpy".

    Returns
    -------
    matplotlib.figure.Figure
        The figure, whose size fits the graph, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        `depth` is negative, or the target is unknown.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    graph, name = dataflow_graph(module, function, target, fused)
    return draw_graph(_opened(graph, depth), name)


def format_dataflow(
    module: Module,
    function: str | None = None,
    *,
    depth: int | None = None,
    target: str = "c",
    fused: bool = True,
) -> str:
    """Return the graph of `draw_dataflow` as text.

    There is one line for each node, with its type and predecessors.  The nodes of a box are below it.

    Parameters
    ----------
    module, function, depth, target, fused
        As for `draw_dataflow`.

    Raises
    ------
    RelvmNameError, RelvmArgumentError
        As for `draw_dataflow`.
    """
    graph, _ = dataflow_graph(module, function, target, fused)
    return format_graph(_opened(graph, depth))


def dataflow_graph(module: Module, function: str | None, target: str, fused: bool) -> tuple[Graph, str]:
    """Return the dataflow graph with all boxes open, and the name of its function.

    Parameters and exceptions are those of `draw_dataflow`.
    """
    built = module_at(module, Stage.ANF, target, fused=fused)
    name = function_name(built, function)
    return function_graph(built[name]), name


def function_graph(function: Function) -> Graph:
    """Return the dataflow graph of a function at stage ANF, with all boxes open."""
    return _Builder(function).graph


def _opened(graph: Graph, depth: int | None) -> Graph:
    if depth is not None and depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected an integer of at least 0, or None")
    return graph if depth is None else collapsed(graph, depth)


class _Builder:
    """Builds the graph of a function at stage ANF.

    The key of an item is its variable.  The key of an item without a variable is a tuple of its kind and a related
    variable or block.
    """

    def __init__(self, function: Function) -> None:
        self.names = printed_names(function)
        self.arrows: dict[Arrow, None] = {}
        params = tuple(self.item(param, "", "end", param) for param in function.params)
        body = self.block(function.block)
        self.graph = Graph((*params, *body), tuple(self.arrows))

    def item(self, var: Var, label: str, kind: str, binding: Binding | MatchCast | Var | None, **more: Any) -> Item:
        """Return the graph item that shows the variable `var`.   more: further attributes of the item."""
        return Item(var, label, kind, cut(format_type(var.type)), self.names[var], binding=binding, **more)

    def block(self, block: Block) -> tuple[Item, ...]:
        """Return the items of a block's bindings and of its result."""
        items = [self.binding(binding) for binding in block.bindings]
        result = ("result", block)
        named = print_expr(block.result, elide_constants=True, show_types=False)
        shown = self.names[block.result] if isinstance(block.result, Var) else cut(named)
        self.needs(block.result, result)
        return (*items, Item(result, f"return {shown}", "end"))

    def binding(self, binding: Binding | MatchCast) -> Item:
        var = binding.var
        match binding:
            case MatchCast(value=value):
                self.needs(value, var)
                return self.item(var, "match_cast", "plain", binding)
            case Binding(value=If() as value):
                return self.choice(binding, value)
            case Binding(value=Fused(Block() as body)):
                return self.group(binding, body)
        self.needs(binding.value, var)
        function = _function_called(binding.value)
        return self.item(var, _what(binding.value), _kind(binding.value), binding, function=function)

    def choice(self, binding: Binding, value: If) -> Item:
        var = binding.var
        cond = ("cond", var)
        self.needs(value.cond, cond)
        items = [Item(cond, f"if {self.shown(value.cond)}", "choice")]
        for name, branch in (("then", value.then), ("else", value.orelse)):
            if not isinstance(branch, Block):
                continue
            key = (name, var)
            items.append(Item(key, name, "branch", inside=self.block(branch)))
            self.arrows[Arrow(cond, key)] = None
            self.arrows[Arrow(("result", branch), var)] = None
        items.append(self.item(var, "", "choice", None))
        return replace(self.item(var, "if", "choice", binding, inside=tuple(items)), key=("if", var))

    def group(self, binding: Binding, body: Block) -> Item:
        """Return a box of operators fused into one kernel.

        The key of the box is `binding.var`, the variable that the rest of the function uses.  The last operator in the
        box has a variable of its own.
        """
        items = [self.binding(each) for each in body.bindings]
        names = [each.value.op.name for each in body.bindings if isinstance(each.value, OpCall)]
        return self.item(binding.var, cut(" ".join(names)), "group", binding, inside=tuple(items))

    def shown(self, atom: Expr) -> str:
        return self.names[atom] if isinstance(atom, Var) else print_expr(atom)

    def needs(self, value: Expr, key: object) -> None:
        """Add arrows from the variables that `value` uses to the item `key`."""
        for source in _variables(value):
            self.arrows[Arrow(source, key)] = None


def _variables(value: Expr) -> Iterator[Var]:
    return (part for part in walk(value) if isinstance(part, Var))


def _what(value: Expr) -> str:
    """Return a short description of the computation of a value."""
    match value:
        case OpCall(op):
            return op.name
        case Call(FunctionRef(name)):
            return terminal(f"@{name}")
        case Call():
            return "call"
        case PackedCall(name):
            return terminal(f"packed {name}")
        case BuiltinCall(name):
            return f"builtin {name}"
        case PrimCall(function):
            return f"prim {function}"
        case Tuple():
            return "tuple"
        case TupleItem(_, index):
            return f"item {index}"
        case Var():
            return "same"
    return cut(print_expr(value, elide_constants=True, show_types=False))


def _function_called(value: Expr) -> str:
    """Return the name of the function that `value` calls, or ""."""
    match value:
        case Call(FunctionRef(name)):
            return name
    return ""


def _kind(value: Expr) -> str:
    match value:
        case OpCall():
            return "operator"
        case Call() | PackedCall():
            return "call"
    return "plain"


def cut(text: str) -> str:
    """Return a type or a description, shortened to at most 40 characters."""
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 3]}..."
