"""Outputs of graph modules that relvm does not compute: views of inputs and of other outputs.  This needs PyTorch.

PyTorch computes these views when the graph has run, so that they share memory as in eager mode.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError


@record
class OutputPlan:
    """The computation of the outputs of a graph from its arguments and the results of the program.

    orders: for each result of the program, the order of the axes that the output has in memory, or None if it is
        row-major.  The program returns the result with its axes in this order.
    views: a function that computes all views from the arguments followed by the results, or None without views.
    outputs: for each output, (0, index of the result), (1, index of the view), or (2, constant).
    """

    orders: tuple[tuple[int, ...] | None, ...]
    views: Callable[..., Sequence[Any]] | None
    outputs: tuple[tuple[int, Any], ...]

    def is_plain(self) -> bool:
        """Return whether the outputs are exactly the results of the program, without views or reordered axes."""
        return not any(self.orders) and list(self.outputs) == [(0, i) for i in range(len(self.outputs))]

    def apply(self, args: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Return the outputs.   args: the arguments of the graph.   results: the results of the program."""
        if any(self.orders):
            results = [
                result if order is None else result.permute(_inverse(order))
                for result, order in zip(results, self.orders, strict=True)
            ]
        views = self.views(*args, *results) if self.views else ()
        return [(results, views)[kind][value] if kind < 2 else value for kind, value in self.outputs]


def plan_outputs(graph_module: Any) -> OutputPlan:
    """Remove the outputs that relvm does not compute from a graph module, and return the plan for all outputs.

    Raises
    ------
    RelvmUnsupportedError
        A view depends on a tensor that is not an output.
    """
    import torch

    graph = graph_module.graph
    (end,) = (node for node in graph.nodes if node.op == "output")
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    nodes = end.args[0] if isinstance(end.args[0], tuple | list) else (end.args[0],)
    own: dict[Any, int] = {}  # what the program computes
    roots = {node: _view_root(node) for node in nodes if isinstance(node, torch.fx.Node)}
    counts = Counter(roots.values())
    for node, root in roots.items():
        if root.op != "placeholder":
            is_alone = counts[root] == 1 and not _has_gaps(node)
            own.setdefault(node if is_alone else root, len(own))
    views = torch.fx.Graph()
    copies = {node: views.placeholder(node.name) for node in (*arguments, *own)}
    found: list[Any] = []
    outputs: list[tuple[int, Any]] = []
    for node in nodes:
        if not isinstance(node, torch.fx.Node):
            outputs.append((2, node))
        elif node in own:
            outputs.append((0, own[node]))
        else:
            outputs.append((1, len(found)))
            found.append(_copied(node, views, copies, own))
    views.output(tuple(found))
    orders = tuple(_order(node) for node in own)
    end.args = (tuple(map(_permuted, own, orders)),)
    graph.eliminate_dead_code()
    graph_module.recompile()
    compute = torch.fx.GraphModule(torch.nn.Module(), views).forward if found else None
    return OutputPlan(orders, compute, tuple(outputs))


def _view_root(node: Any) -> Any:
    """Return the node whose memory `node` is a view of, or `node` itself."""
    while node.op == "call_function" and (node.target is operator.getitem or getattr(node.target, "is_view", False)):
        source = node.args[0]
        if node.target is operator.getitem and not getattr(source.target, "is_view", False):
            return node
        node = source
    return node


def _copied(node: Any, graph: Any, copies: dict[Any, Any], own: dict[Any, int]) -> Any:
    """Copy a node, and the nodes on which it depends, to a graph.

    A size that depends on a tensor that is no output becomes a result of the program.

    copies: the nodes that have been copied.   own: the position of each result of the program.
    """
    if node not in copies:
        if _is_size(node) and not _can_be_copied(node, copies, {}):
            own[node] = len(own)
            copies[node] = graph.placeholder(node.name)
            return copies[node]
        if not _is_step(node):
            raise RelvmUnsupportedError(f"the output is a view whose size depends on {node.name}, which is no output")
        for source in node.all_input_nodes:
            _copied(source, graph, copies, own)
        copies[node] = graph.node_copy(node, copies.__getitem__)
    return copies[node]


def _can_be_copied(node: Any, copies: dict[Any, Any], known: dict[Any, bool]) -> bool:
    """Return whether a node depends only on copied nodes.   known: the nodes for which this has been found out."""
    if node in copies:
        return True
    if node not in known:
        sources = node.all_input_nodes
        known[node] = _is_step(node) and all(_can_be_copied(source, copies, known) for source in sources)
    return known[node]


def _is_size(node: Any) -> bool:
    import torch

    return isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int)


def _is_step(node: Any) -> bool:
    """Return whether a node computes a size or a view."""
    is_view = node.target is operator.getitem or getattr(node.target, "is_view", False)
    return node.op == "call_function" and (_is_size(node) or is_view)


def _order(node: Any) -> tuple[int, ...] | None:
    """Return the order of the axes of a tensor in memory, or None if it is row-major, or if it has gaps."""
    value = node.meta.get("val")
    if not isinstance(value, _tensor_type()) or value.is_contiguous() or _has_gaps(node):
        return None
    strides = list(map(_hint, value.stride()))
    order = tuple(sorted(range(value.dim()), key=lambda axis: (-strides[axis], axis)))
    return None if order == tuple(range(value.dim())) else order


def _has_gaps(node: Any) -> bool:
    """Return whether a tensor has gaps between its elements in memory, or elements that share memory."""
    value = node.meta.get("val")
    if not isinstance(value, _tensor_type()) or value.is_contiguous():
        return False
    sizes, strides = list(map(_hint, value.shape)), list(map(_hint, value.stride()))
    expected = 1
    for stride, size in sorted(zip(strides, sizes, strict=True)):
        if size != 1 and stride != expected:
            return True
        expected *= size
    return False


def _tensor_type() -> Any:
    import torch

    return torch.Tensor


def _hint(size: Any) -> int:
    """Return a size as an int.  For a symbolic size, this is its value for the example inputs of the trace."""
    return size if isinstance(size, int) else int(size.node.hint)


def _permuted(node: Any, order: tuple[int, ...] | None) -> Any:
    import torch

    if order is None:
        return node
    with node.graph.inserting_after(node):
        permuted = node.graph.call_function(torch.ops.aten.permute.default, (node, list(order)))
    permuted.meta = {**node.meta, "val": node.meta["val"].permute(order)}
    return permuted


def _inverse(order: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(order.index(axis) for axis in range(len(order)))
