"""Blocks that fail when they run: nodes in a branch or a loop body that cannot be computed.

A branch that is never taken, or a loop without iterations, can contain such nodes.  An example is a Gather with a
constant index that is out of range.  The importer of the If or Loop catches the error that the conversion of the node
raises, and replaces the whole block by one that raises the error at run time.
"""

from __future__ import annotations

from relvm.errors import RelvmArgumentError, RelvmArithmeticError, RelvmError, RelvmIndexError, RelvmTypeError
from relvm.frontend.onnx.context import ImportContext
from relvm.ir.expr import Binding, Block, BuiltinCall, MatchCast, Null, String, Var, prim
from relvm.ir.types import VOID, Type
from relvm.tables import STATUS

# The errors of a node that fails whenever it runs.  A node that is malformed or not supported is an error of the model.
NODE_FAILURES = (RelvmArgumentError, RelvmArithmeticError, RelvmIndexError, RelvmTypeError)

_STATUS_OF_CLASS = {row.python_class: row.index for row in STATUS}


def failing_block(graph: ImportContext, error: RelvmError, type_: Type) -> Block:
    """Return a block of type `type_` that raises `error`, an instance of one of NODE_FAILURES, when it runs."""
    message = String(str(error))
    fail = BuiltinCall("fail", (prim(_STATUS_OF_CLASS[type(error).__name__]), message), type=VOID)
    never = graph.var("never", type_)
    bindings = (Binding(Var("_", type=VOID, origins=(graph.origin,)), fail), MatchCast(never, Null(), graph.origin))
    return Block(bindings, never, type=type_)
