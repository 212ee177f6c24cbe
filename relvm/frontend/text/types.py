"""Parsing of types and dimensions in the text form."""

from __future__ import annotations

from collections.abc import Callable

from relvm.errors import RelvmNameError, RelvmSyntaxError, RelvmUnsupportedError, near_matches
from relvm.frontend.text.lexer import Source, Token, TokenReader
from relvm.ir.dtypes import ALL_DTYPES, BOOL, F64, I64
from relvm.ir.printer import DIM_KEYWORDS
from relvm.ir.symbolic import AnyDim, dim_op, dim_var
from relvm.ir.types import OBJECT, FuncType, ListType, OptionalType, PrimType, ShapeType, TensorType, TupleType, Type

_DIM_FUNCTIONS = {"+": "add", "-": "sub", "*": "mul", "//": "floordiv", "%": "mod"}
_HOLDERS = {"list": ListType, "optional": OptionalType}
_OTHER_TYPES = ("tensor", "shape", "object", *_HOLDERS)


def parse_type(text: str, dims: dict[str, AnyDim] | None = None) -> Type:
    """Parse a type such as `f32[n, 4]`.

    Parameters
    ----------
    text
        The text of one type.
    dims
        The dimension variables by name.  New dimension variables in `text` are added to this dict.

    Raises
    ------
    RelvmSyntaxError, RelvmNameError
        The text is not a type, or a type in it does not exist.
    """
    reader = TypeReader(Source(text, "<type>"), {} if dims is None else dims)
    type_ = reader.type()
    reader.end()
    return type_


class TypeReader(TokenReader):
    """The parser of types.

    dims: the dimension variables of the function being parsed, by name.  in_scalar: whether the dimension being parsed
    is the value of a scalar.  New variables in such a dimension can be negative.
    """

    def __init__(self, source: Source, dims: dict[str, AnyDim]) -> None:
        super().__init__(source)
        self.dims = dims
        self.in_scalar = False

    def type(self) -> Type:
        self.deeper()
        start = self.token
        try:
            type_ = self.parenthesised_type() if self.accept("(") else self.named_type()
        except RelvmUnsupportedError as error:  # a type that is too large
            if hasattr(error, "lineno"):  # the error already has its position
                raise
            raise self.error(RelvmUnsupportedError, str(error), start) from None
        self.depth -= 1
        return type_

    def parenthesised_type(self) -> Type:
        """Parse a tuple type, a function type, or a type in parentheses, after the `(`."""
        parts, is_tuple = self.listed(")", self.type)
        if self.at("->") or self.at("=>"):
            pure = self.take().text == "->"
            return FuncType(tuple(parts), self.type(), pure)
        return TupleType(tuple(parts)) if is_tuple else parts[0]

    def named_type(self) -> Type:
        token = self.expect_kind("name", "a type")
        name = token.text
        if name == "object":
            return OBJECT
        dtype = ALL_DTYPES.get(name)
        if dtype is None and name not in _OTHER_TYPES:
            raise self.error(RelvmNameError, f"no type {name}{near_matches(name, (*ALL_DTYPES, *_OTHER_TYPES))}", token)
        if name in _HOLDERS:
            self.expect("[")
            return self.holder(_HOLDERS[name])
        if self.accept("["):
            dims, rank = self.dimension_list()
            return ShapeType(dims, rank) if name == "shape" else TensorType(dtype, dims, rank)
        if dtype is None:
            raise self.unexpected("[")
        if dtype not in (BOOL, I64, F64):
            raise self.error(
                RelvmSyntaxError,
                f"a scalar must be bool, i64 or f64, got {name}; write {name}[] for a 0-d tensor",
                token,
            )
        if dtype != I64 or self.token.first or not self.accept("("):
            return PrimType(dtype)
        outer, self.in_scalar = self.in_scalar, True
        value = self.dim()
        self.in_scalar = outer
        self.expect(")")
        return PrimType(dtype, value)

    def holder(self, kind: Callable[[Type | None], Type]) -> Type:
        """Parse the rest of a list or optional type after the `[`.

        kind: a function that constructs the type from its item type, which is None for `[]`.
        """
        if self.accept("]"):
            return kind(None)
        inner = self.type()
        self.expect("]")
        return kind(inner)

    def dimension_list(self) -> tuple[tuple[AnyDim, ...] | None, int | None]:
        """Parse dimensions up to and including the `]`.  Return the dimensions and the rank, each None if unknown."""
        if self.accept("..."):
            self.expect("]")
            return None, None
        start = self.token
        dims, _ = self.listed("]", lambda: None if self.accept("_") else self.size())
        if None not in dims:
            return tuple(dims), len(dims)
        if any(dim is not None for dim in dims):
            raise self.error(RelvmSyntaxError, "expected either all dimensions to be _ or none", start)
        return None, len(dims)

    def size(self) -> AnyDim:
        token, dim = self.token, self.dim()
        if isinstance(dim, int) and dim < 0:
            raise self.error(RelvmSyntaxError, f"a dimension must be at least 0, got {dim}", token)
        return dim

    def dim(self) -> AnyDim:
        """Parse a dimension: a sum of products."""
        self.deeper()
        left = self.dim_product()
        while self.at("+") or self.at("-"):
            sign = self.take()
            left = self.combined(sign, left, self.dim_product())
        self.depth -= 1
        return left

    def dim_product(self) -> AnyDim:
        left = self.dim_factor()
        while self.token.text in ("*", "//", "%"):
            sign = self.take()
            right = self.dim_factor()
            if right == 0 and sign.text != "*":
                raise self.error(RelvmSyntaxError, "division of a dimension by 0", sign)
            left = self.combined(sign, left, right)
        return left

    def combined(self, operator: Token, left: AnyDim, right: AnyDim) -> AnyDim:
        """Return `left operator right`.  A result that is too large is an error at the operator."""
        try:
            return dim_op(_DIM_FUNCTIONS.get(operator.text, operator.text), left, right)
        except RelvmUnsupportedError as error:
            raise self.error(RelvmUnsupportedError, str(error), operator) from None

    def dim_factor(self) -> AnyDim:
        if self.token.kind == "int":
            return self.integer()
        if self.accept("-"):
            self.deeper()
            factor = self.dim_factor()
            self.depth -= 1
            return -factor
        if self.accept("("):
            dim = self.dim()
            self.expect(")")
            return dim
        token = self.expect_kind("name", "a dimension")
        name = token.text
        if name in ("min", "max"):
            self.expect("(")
            left = self.dim()
            self.expect(",")
            right = self.dim()
            self.expect(")")
            return self.combined(token, left, right)
        if name in DIM_KEYWORDS:
            self.position -= 1
            raise self.unexpected("a dimension")
        if name not in self.dims:
            self.dims[name] = dim_var(name, signed=self.in_scalar)
        return self.dims[name]
