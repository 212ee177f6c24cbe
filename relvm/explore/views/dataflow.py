"""Dataflow graphs of functions, as charts and text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from relvm.errors import RelvmArgumentError
from relvm.explore.draw.graph import Arrow, Graph, Item, collapse, format_graph
from relvm.explore.draw.graph_figure import draw_graph
from relvm.explore.selection import choose_function, run_to_stage
from relvm.explore.views.bookkeeping import is_bookkeeping, mark_size_tensors
from relvm.explore.views.size_names import SizeNames
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
from relvm.ir.verifier import Stage
from relvm.quoting import terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_LETTERS = 40  # longer types and descriptions are cut

# The kinds of items in a dataflow graph.
LEGEND = {
    "end": "input or result",
    "operator": "operator with a kernel of its own",
    "group": "kernel of several operators",
    "call": "call of a function",
    "choice": "if",
    "branch": "branch of an if",
    "function": "function",
    "scope": "scope of names, or block",
    "repeat": "repeated scopes or blocks",
    "plain": "size, check or other value",
}


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
        Number of nested levels of boxes whose contents are drawn.  Each box below these levels is drawn as one node.
        With 0, for example, each kernel is one node.  The default, None, draws the contents of all boxes.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

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
    return draw_graph(_with_depth(graph, depth), name)


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
    module
        The module from a front end.
    function
        Name of the function, by default the first public one.
    depth
        Number of nested levels of boxes whose contents are listed.  The default, None, lists the contents of all boxes.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        `depth` is negative, or the target is unknown.
    """
    graph, _ = dataflow_graph(module, function, target, fused)
    return format_graph(_with_depth(graph, depth))


def dataflow_graph(module: Module, function: str | None, target: str, fused: bool) -> tuple[Graph, str]:
    """Return the dataflow graph of a function with all boxes open, and the name of the function.

    function: the name of the function, or None for the first public one.
    target: the form of kernels, "c", "bytecode" or "numpy".
    fused: whether operators are fused into common kernels.

    Raise RelvmNameError if the function does not exist, and RelvmArgumentError if the target is unknown.
    """
    built = run_to_stage(module, Stage.ANF, target, fused=fused)
    name = choose_function(built, function)
    return function_graph(built[name], SizeNames([built[name]])), name


def function_graph(function: Function, sizes: SizeNames) -> Graph:
    """Return the dataflow graph of a function at stage ANF, with all boxes open.

    sizes: the short names of sizes, to which this function adds those of the graph.
    """
    return mark_size_tensors(_Builder(function, sizes).graph)


def _with_depth(graph: Graph, depth: int | None) -> Graph:
    if depth is not None and depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected an integer of at least 0, or None")
    return graph if depth is None else collapse(graph, depth)


class _Builder:
    """Builds the dataflow graph of a function at stage ANF.

    An item that shows a variable has this variable as its key.  The key of any other item is a tuple: its kind, such as
    "result", and a related variable or block.
    """

    def __init__(self, function: Function, sizes: SizeNames) -> None:
        self.sizes = sizes
        self.names = printed_names(function)
        self.arrows: dict[Arrow, None] = {}
        params = tuple(self.item(param, "", "end", param) for param in function.params)
        body = self.block(function.block)
        self.graph = Graph((*params, *body), tuple(self.arrows), sizes.sizes, LEGEND)

    def item(self, var: Var, label: str, kind: str, binding: Binding | MatchCast | Var | None, **more: Any) -> Item:
        """Return a graph item that shows the variable `var`.

        label: what the item computes, such as the name of an operator.
        kind: a key of COLORS, which determines the color.
        binding: what the item shows: a binding, or the variable of a parameter.
        more: further attributes of the item.
        """
        more["is_bookkeeping"] = isinstance(binding, Binding | MatchCast) and is_bookkeeping(binding)
        return Item(var, label, kind, truncate(self.sizes.format(var.type)), self.names[var], binding=binding, **more)

    def block(self, block: Block) -> tuple[Item, ...]:
        """Return an item for each binding of a block, and one for its result."""
        items = [self.binding(binding) for binding in block.bindings]
        result = ("result", block)
        named = print_expr(block.result, elide_constants=True, show_types=False)
        shown = self.names[block.result] if isinstance(block.result, Var) else truncate(named)
        self.add_arrows(block.result, result)
        return (*items, Item(result, f"return {shown}", "end"))

    def binding(self, binding: Binding | MatchCast) -> Item:
        var = binding.var
        match binding:
            case MatchCast(value=value):
                self.add_arrows(value, var)
                return self.item(var, "match_cast", "plain", binding)
            case Binding(value=If() as value):
                return self.if_box(binding, value)
            case Binding(value=Fused(Block() as body)):
                return self.fused_box(binding, body)
        self.add_arrows(binding.value, var)
        function = _function_called(binding.value)
        return self.item(var, _describe(binding.value), _kind(binding.value), binding, function=function)

    def if_box(self, binding: Binding, value: If) -> Item:
        var = binding.var
        cond = ("cond", var)
        self.add_arrows(value.cond, cond)
        items = [Item(cond, f"if {self.atom_text(value.cond)}", "choice")]
        for name, branch in (("then", value.then), ("else", value.orelse)):
            if not isinstance(branch, Block):
                continue
            key = (name, var)
            items.append(Item(key, name, "branch", inside=self.block(branch)))
            self.arrows[Arrow(cond, key)] = None
            self.arrows[Arrow(("result", branch), var)] = None
        items.append(self.item(var, "", "choice", None))
        return replace(self.item(var, "if", "choice", binding, inside=tuple(items)), key=("if", var))

    def fused_box(self, binding: Binding, body: Block) -> Item:
        """Return a box with the operators that are fused into one kernel.

        The key of the box is `binding.var`, the variable that later bindings use.  The last operator in the box has
        another variable, which is local to `body`.
        """
        items = [self.binding(each) for each in body.bindings]
        names = [each.value.op.name for each in body.bindings if isinstance(each.value, OpCall)]
        return self.item(binding.var, truncate(" ".join(names)), "group", binding, inside=tuple(items))

    def atom_text(self, atom: Expr) -> str:
        return self.names[atom] if isinstance(atom, Var) else print_expr(atom)

    def add_arrows(self, value: Expr, key: object) -> None:
        """Add arrows to the item `key` from the variables that `value` uses."""
        for source in _variables(value):
            self.arrows[Arrow(source, key)] = None


def _variables(value: Expr) -> Iterator[Var]:
    return (part for part in walk(value) if isinstance(part, Var))


def _describe(value: Expr) -> str:
    """Return a short description of an expression, such as the name of its operator."""
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
    return truncate(print_expr(value, elide_constants=True, show_types=False))


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


def truncate(text: str) -> str:
    """Shorten a type or a description to at most 40 characters."""
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 3]}..."
