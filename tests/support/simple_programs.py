"""Random programs from a seed, without side effects or recursion.

They consist of functions on tensors of symbolic shape, with tuples, ifs, calls and closures."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np

import relvm.ops as ops
from relvm.ir.dtypes import BOOL, F32, I64
from relvm.ir.expr import (
    Binding,
    Block,
    Call,
    Expr,
    Function,
    FunctionRef,
    If,
    Module,
    Shape,
    Tuple,
    TupleItem,
    Var,
    constant,
    prim,
)
from relvm.ir.symbolic import DimVar, as_var, dim_var
from relvm.ir.types import FuncType, PrimType, TensorType, TupleType, Type, substitute_dims

BINARY = (ops.add, ops.subtract, ops.multiply, ops.maximum, ops.minimum)
UNARY = (ops.relu, ops.negative, ops.abs)
FLOAT_UNARY = (ops.tanh, ops.sigmoid)
COMPARISONS = (ops.less, ops.equal, ops.greater_equal)


class Generator:
    """Generates a module that is determined by a seed.  Every second function is private."""

    def __init__(self, seed: int, functions: int = 8, bindings: int = 8) -> None:
        self.random = random.Random(seed)
        self.functions: list[Function] = []
        self.count = 0
        for i in range(functions):
            function = self.function(f"f{i}", self.random.randint(1, bindings))
            self.functions.append(replace(function, private=i % 2 == 0))

    def module(self) -> Module:
        return Module(tuple(self.functions))

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def function(self, name: str, bindings: int) -> Function:
        """Return a random function.

        Its parameters are a bool scalar, float and integer tensors of shape (n, m), (m,) and (), and a pair of tensors.
        """
        n, m = dim_var("n"), dim_var("m")
        types: list[Type] = [
            PrimType(BOOL),
            TensorType(F32, (n, m)),
            TensorType(F32, (m,)),
            TensorType(I64, (n, m)),
            TensorType(I64, ()),
            TupleType((TensorType(F32, (n, m)), TensorType(F32, ()))),
        ]
        params = tuple(Var(f"p{i}", type=type_) for i, type_ in enumerate(types))
        body = self.block(list(params), bindings, depth=0, wanted=None)
        return Function(name, params, body, result_type=body.type)

    def block(self, scope: list[Expr], bindings: int, depth: int, wanted: Type | None) -> Block:
        """Return a block that can use the expressions in `scope`.  wanted: the type of its result, or None for any."""
        scope, made = list(scope), []
        for _ in range(bindings):
            value = self.value(scope, depth)
            if value is None:
                continue
            var = Var(self.name(), type=value.type)
            made.append(Binding(var, value))
            scope.append(var)
        candidates = (
            [e for e in scope if e.type == wanted] if wanted else [e for e in scope if not isinstance(e.type, FuncType)]
        )
        result = self.random.choice(candidates[-4:])
        return Block(tuple(made), result, type=result.type)

    def value(self, scope: list[Expr], depth: int) -> Expr | None:
        kinds = [
            "binary",
            "binary",
            "unary",
            "compare",
            "tuple",
            "item",
            "constant",
            "reshape",
            "where",
            "reduce",
            "call",
        ]
        if depth < 2:
            kinds += ["conditional", "conditional", "closure", "apply"]
        return getattr(self, self.random.choice(kinds))(scope, depth)

    def pick(self, scope: list[Expr], test) -> Expr | None:
        found = [e for e in scope if test(e.type)]
        return self.random.choice(found) if found else None

    def tensor(self, scope: list[Expr], dtypes=(F32, I64)) -> Expr | None:
        return self.pick(scope, lambda t: isinstance(t, TensorType) and t.dtype in dtypes)

    def pair(self, scope: list[Expr]) -> tuple[Expr, Expr] | None:
        """Return two tensors of the same dtype, or None.  The shape of the second is a suffix of that of the first."""
        x = self.tensor(scope)
        if x is None:
            return None

        def fits(type_: Type) -> bool:
            if not isinstance(type_, TensorType) or type_.dtype != x.type.dtype:
                return False
            return type_.shape == x.type.shape[len(x.type.shape) - len(type_.shape) :]

        return x, self.pick(scope, fits)

    def binary(self, scope: list[Expr], depth: int) -> Expr | None:
        pair = self.pair(scope)
        return pair and self.random.choice(BINARY)(*pair)

    def compare(self, scope: list[Expr], depth: int) -> Expr | None:
        pair = self.pair(scope)
        return pair and self.random.choice(COMPARISONS)(*pair)

    def unary(self, scope: list[Expr], depth: int) -> Expr | None:
        x = self.tensor(scope)
        return x and self.random.choice(UNARY + FLOAT_UNARY if x.type.dtype == F32 else UNARY)(x)

    def where(self, scope: list[Expr], depth: int) -> Expr | None:
        cond = self.tensor(scope, (BOOL,))
        x = cond and self.pick(scope, lambda t: isinstance(t, TensorType) and t.shape == cond.type.shape)
        y = x and self.pick(scope, lambda t: t == x.type)
        return y and ops.where(cond, x, y)

    def reduce(self, scope: list[Expr], depth: int) -> Expr | None:
        x = self.pick(scope, lambda t: isinstance(t, TensorType) and t.dtype != BOOL and t.rank > 0)
        return x and ops.sum(x, axes=(self.random.randrange(x.type.rank),), keepdims=self.random.random() < 0.5)

    def reshape(self, scope: list[Expr], depth: int) -> Expr | None:
        x = self.pick(scope, lambda t: isinstance(t, TensorType) and t.rank == 2)
        return x and ops.reshape(x, Shape((x.type.shape[0] * x.type.shape[1],)))

    def constant(self, scope: list[Expr], depth: int) -> Expr:
        value = self.random.choice(
            [np.float32(self.random.uniform(-2, 2)), np.int64(self.random.randint(-3, 3)), np.float32([1, -1])[:1]]
        )
        return constant(value)

    def tuple(self, scope: list[Expr], depth: int) -> Expr:
        fields = tuple(self.random.choice(scope) for _ in range(self.random.randint(0, 3)))
        fields = tuple(f for f in fields if not isinstance(f.type, FuncType))
        return Tuple(fields, type=TupleType(tuple(f.type for f in fields)))

    def item(self, scope: list[Expr], depth: int) -> Expr | None:
        t = self.pick(scope, lambda t: isinstance(t, TupleType) and t.fields)
        if t is None:
            return None
        index = self.random.randrange(len(t.type.fields))
        return TupleItem(t, index, type=t.type.fields[index])

    def condition(self, scope: list[Expr]) -> Expr:
        found = self.pick(
            scope,
            lambda t: t == PrimType(BOOL) or (isinstance(t, TensorType) and t.rank == 0 and t.dtype in (BOOL, I64)),
        )
        return found if found is not None and self.random.random() < 0.9 else prim(self.random.random() < 0.5)

    def conditional(self, scope: list[Expr], depth: int) -> Expr | None:
        cond = self.condition(scope)
        then = self.block(scope, self.random.randint(0, 3), depth + 1, None)
        orelse = self.block(scope, self.random.randint(0, 3), depth + 1, None)
        if then.type != orelse.type:
            if all(e.type != then.type for e in scope):
                return None
            orelse = self.block(scope, 0, depth + 1, then.type)
        return If(cond, then, orelse, type=then.type)

    def call(self, scope: list[Expr], depth: int) -> Expr | None:
        """Return a call of an earlier function, whose arguments are the parameters of this function.

        All functions have the same parameter types, up to the sizes.  Return None if the call is not possible.
        """
        if not self.functions:
            return None
        callee = self.random.choice(self.functions)
        args = [e for e in scope if isinstance(e, Var) and e.name.startswith("p")][: len(callee.params)]
        if len(args) < len(callee.params):
            return None
        values = dict(zip(_dim_vars(callee.params), args[1].type.shape, strict=True))
        return Call(
            FunctionRef(callee.name, type=callee.func_type),
            tuple(args),
            type=substitute_dims(callee.result_type, values),
        )

    def closure(self, scope: list[Expr], depth: int) -> Expr | None:
        like = self.tensor(scope)
        if like is None:
            return None
        param = Var(self.name(), type=like.type)
        body = self.block([*scope, param], self.random.randint(1, 3), depth + 1, None)
        type_ = FuncType((param.type,), body.type)
        return Function("", (param,), body, result_type=body.type, type=type_)

    def apply(self, scope: list[Expr], depth: int) -> Expr | None:
        f = self.pick(scope, lambda t: isinstance(t, FuncType))
        x = f and self.pick(scope, lambda t: t == f.type.params[0])
        return x and Call(f, (x,), type=f.type.result)


def _dim_vars(params: tuple[Var, ...]) -> list[DimVar]:
    return [as_var(dim) for dim in params[1].type.shape]


def arguments(seed: int, n: int, m: int) -> tuple:
    """Return arguments for any function of a generated module.  n, m: the sizes."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (n, m)).astype(np.float32)
    return (
        bool(rng.integers(2)),
        x,
        rng.uniform(-2, 2, m).astype(np.float32),
        rng.integers(-5, 5, (n, m)),
        np.array(rng.integers(-2, 2)),
        (x * 2, np.array(rng.uniform(-1, 1), np.float32)),
    )
