"""Devirtualization: direct calls of functions that are known at compile time."""

from __future__ import annotations

from dataclasses import replace

from relvm.lir.routine import CallStatement, FunctionItem, LirModule, Statement, builtin, map_statements

_INVOKE = builtin("invoke_closure")


def devirtualize_calls(module: LirModule) -> LirModule:
    """Replace a call through `invoke_closure` by a direct call if the callee is in the function table:

    call_packed("vm.builtin.invoke_closure", ctx_ptr, f[3], x)   ->   call_routine("foo", x)

    A call with a wrong number of arguments is left unchanged, and fails when it runs.
    """
    counts = {routine.key: len(routine.params) for routine in module.routines}

    def direct(item: Statement) -> Statement:
        match item:
            case CallStatement(function=function, args=(_, FunctionItem(index), *args)) if function == _INVOKE:
                callee = module.functions[index]
                if counts.get(callee, len(args)) == len(args):
                    return replace(item, function=callee, args=tuple(args))
        return item

    return module.map_bodies(lambda routine: map_statements(direct, routine.body))
