"""What of a function needs what, drawn and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from relvm.errors import RelvmArgumentError
from relvm.explore.draw.graph import Arrow, Graph, Item, collapsed, draw_graph, format_graph
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

_MAX_LETTERS = 40  # of a type, or of what a value is; the rest is dots


def draw_dataflow(
    module: Module,
    function: str | None = None,
    *,
    depth: int | None = None,
    target: str = "c",
    fused: bool = True,
) -> Figure:
    """A picture of what each value of a function is computed from, right before kernels are made.

    A node is a parameter, a binding, or the function's result; arrows lead from a value to those that are computed
    from it.  Operators that share a kernel are in a green box; an `if` is a box with one for each branch.  Constants
    are left out.  Variables have the names that the text of the stage has: with target "c", that of the pass fuse_ops.

    Parameters
    ----------
    module
        As a front end made it.
    function
        By default the first public one.
    depth
        How many levels of boxes are open, a closed one being a node: 0 leaves a node for each kernel.  None: all.
    target, fused
        As `vm.build` takes them; target: "c" or "numpy".

    Returns
    -------
    matplotlib.figure.Figure
        As large as it needs to be.  Which `savefig` writes, and Jupyter shows.

    Raises
    ------
    RelvmNameError
        There is no such function.
    RelvmArgumentError
        `depth` is negative; there is no such target.
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
    """The same as text: a line for each node with its type and what it is computed from, those of a box below it.

    Parameters
    ----------
    module, function, depth, target, fused
        As `draw_dataflow` takes them.

    Raises
    ------
    RelvmNameError, RelvmArgumentError
        As `draw_dataflow` does.
    """
    graph, _ = dataflow_graph(module, function, target, fused)
    return format_graph(_opened(graph, depth))


def dataflow_graph(module: Module, function: str | None, target: str, fused: bool) -> tuple[Graph, str]:
    """The graph with all boxes open, and the name of the function that it is of.  Parameters and what is raised: as of
    `draw_dataflow`."""
    built = module_at(module, Stage.ANF, target, fused=fused)
    name = function_name(built, function)
    return _Builder(built[name]).graph, name


def _opened(graph: Graph, depth: int | None) -> Graph:
    if depth is not None and depth < 0:
        raise RelvmArgumentError(f"depth={depth}: expected 0 or more, or None")
    return graph if depth is None else collapsed(graph, depth)


class _Builder:
    """Makes the graph of a function at stage ANF.  Keys of items: the variable; what else there is has a tuple of
    its kind and the variable or block that it is of."""

    def __init__(self, function: Function) -> None:
        self.names = printed_names(function)
        self.arrows: dict[Arrow, None] = {}
        params = tuple(Item(param, self.text(param, ""), "end") for param in function.params)
        body = self.block(function.block)
        self.graph = Graph((*params, *body), tuple(self.arrows))

    def text(self, var: Var, what: str) -> str:
        return f"{self.names[var]}{' = ' * bool(what)}{what}\n{_short(format_type(var.type))}"

    def block(self, block: Block) -> tuple[Item, ...]:
        """The items of a block's bindings and of its result."""
        items = [self.binding(binding) for binding in block.bindings]
        result = ("result", block)
        named = print_expr(block.result, elide_constants=True, show_types=False)
        shown = self.names[block.result] if isinstance(block.result, Var) else _short(named)
        self.needs(block.result, result)
        return (*items, Item(result, f"return {shown}", "end"))

    def binding(self, binding: Binding | MatchCast) -> Item:
        var = binding.var
        match binding:
            case MatchCast(value=value):
                self.needs(value, var)
                return Item(var, self.text(var, "match_cast"), "plain")
            case Binding(value=If() as value):
                return self.choice(var, value)
            case Binding(value=Fused(Block() as body)):
                return self.group(var, body)
        self.needs(binding.value, var)
        return Item(var, self.text(var, _what(binding.value)), _kind(binding.value))

    def choice(self, var: Var, value: If) -> Item:
        cond = ("cond", var)
        self.needs(value.cond, cond)
        items = [Item(cond, f"if {self.shown(value.cond)}", "choice")]
        for name, branch in (("then", value.then), ("else", value.orelse)):
            if not isinstance(branch, Block):
                continue
            key = (name, var)
            items.append(Item(key, name, "branch", self.block(branch)))
            self.arrows[Arrow(cond, key)] = None
            self.arrows[Arrow(("result", branch), var)] = None
        items.append(Item(var, self.text(var, ""), "choice"))
        return Item(("if", var), self.text(var, "if"), "choice", tuple(items))

    def group(self, var: Var, body: Block) -> Item:
        """A box of operators that are one kernel.  What is outside of it names `var`, its last member another one."""
        items = [self.binding(binding) for binding in body.bindings]
        names = [binding.value.op.name for binding in body.bindings if isinstance(binding.value, OpCall)]
        title = f"{self.names[var]} = {_short(' '.join(names))}\n{_short(format_type(var.type))}"
        return Item(var, title, "group", tuple(items))

    def shown(self, atom: Expr) -> str:
        return self.names[atom] if isinstance(atom, Var) else print_expr(atom)

    def needs(self, value: Expr, key: object) -> None:
        """Has what a value is computed from lead to an item."""
        for source in _variables(value):
            self.arrows[Arrow(source, key)] = None


def _variables(value: Expr) -> Iterator[Var]:
    return (part for part in walk(value) if isinstance(part, Var))


def _what(value: Expr) -> str:
    """What computes a value."""
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
    return _short(print_expr(value, elide_constants=True, show_types=False))


def _kind(value: Expr) -> str:
    match value:
        case OpCall():
            return "operator"
        case Call() | PackedCall():
            return "call"
    return "plain"


def _short(text: str) -> str:
    return text if len(text) <= _MAX_LETTERS else f"{text[: _MAX_LETTERS - 3]}..."
