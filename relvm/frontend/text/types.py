"""Parsing of types and dimensions in the text form."""

from __future__ import annotations

from collections.abc import Callable

from relvm.errors import RelvmNameError, RelvmSyntaxError, RelvmUnsupportedError, near_matches
from relvm.frontend.text.lexer import Source, Token, TokenReader
from relvm.ir.dtypes import ALL_DTYPES, BOOL, F64, I64
from relvm.ir.printer import DIM_KEYWORDS
from relvm.ir.scalar_ops import FORMS
from relvm.ir.symbolic import AnyDim, dim_op, dim_var
from relvm.ir.types import OBJECT, FuncType, ListType, OptionalType, PrimType, ShapeType, TensorType, TupleType, Type

_CONTAINERS = {"list": ListType, "optional": OptionalType}
_OTHER_TYPES = ("tensor", "shape", "object", *_CONTAINERS)


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

    dims: the dimension variables of the function being parsed, by name.
    in_scalar: whether the dimension being parsed is the known value of a scalar type, as in `i64(n)`.  A new
    variable in such a dimension can be negative.
    """

    def __init__(self, source: Source, dims: dict[str, AnyDim]) -> None:
        super().__init__(source)
        self.dims = dims
        self.in_scalar = False

    def type(self) -> Type:
        self.enter_level()
        start = self.token
        try:
            type_ = self.parenthesized_type() if self.accept("(") else self.named_type()
        except RelvmUnsupportedError as error:  # a type that is too large
            if hasattr(error, "lineno"):  # the error already has its position
                raise
            raise self.error(RelvmUnsupportedError, str(error), start) from None
        self.depth -= 1
        return type_

    def parenthesized_type(self) -> Type:
        """Parse a type that begins with a parenthesis: a tuple type, a function type, or a type in parentheses.

        The opening parenthesis has already been read.
        """
        parts, is_tuple = self.comma_separated(")", self.type)
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
        if name in _CONTAINERS:
            self.expect("[")
            return self.container_type(_CONTAINERS[name])
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
        if dtype != I64 or self.token.is_first_in_line or not self.accept("("):
            return PrimType(dtype)
        outer, self.in_scalar = self.in_scalar, True
        value = self.dim()
        self.in_scalar = outer
        self.expect(")")
        return PrimType(dtype, value)

    def container_type(self, kind: Callable[[Type | None], Type]) -> Type:
        """Parse the item type of a list or optional type, and the `]` after it.

        kind: a function that constructs the whole type from the item type, or from None for `[]`.
        """
        if self.accept("]"):
            return kind(None)
        inner = self.type()
        self.expect("]")
        return kind(inner)

    def dimension_list(self) -> tuple[tuple[AnyDim, ...] | None, int | None]:
        """Parse the dimensions of a type, and the `]` after them.

        Return the dimensions and the rank.  For `[...]`, both are None.  For `[_, _]`, only the dimensions are None.
        """
        if self.accept("..."):
            self.expect("]")
            return None, None
        start = self.token
        dims, _ = self.comma_separated("]", lambda: None if self.accept("_") else self.size())
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
        """Parse a dimension: a sum of products, such as `n * 2 + 1`.

        A constant inside the dimension may exceed int64, as in `n * 9223372036854775808`.
        """
        token, dim = self.token, self.dim_sum()
        if isinstance(dim, int) and not -(1 << 63) <= dim < 1 << 63:
            raise self.error(RelvmSyntaxError, f"{dim} is out of the range of int64", token)
        return dim

    def dim_sum(self) -> AnyDim:
        self.enter_level()
        left = self.dim_product()
        while self.at("+") or self.at("-"):
            sign = self.take()
            left = self.dim_operation(sign, left, self.dim_product())
        self.depth -= 1
        return left

    def dim_product(self) -> AnyDim:
        left = self.dim_factor()
        while self.token.text in ("*", "//", "%"):
            sign = self.take()
            right = self.dim_factor()
            if right == 0 and sign.text != "*":
                raise self.error(RelvmSyntaxError, "division of a dimension by 0", sign)
            left = self.dim_operation(sign, left, right)
        return left

    def dim_operation(self, operator: Token, left: AnyDim, right: AnyDim) -> AnyDim:
        """Return the result of `operator`, such as `+`, on two dimensions.

        If the result is too large, raise an error with the position of the operator.
        """
        try:
            return dim_op(FORMS.get((operator.text, 2), operator.text), left, right)
        except RelvmUnsupportedError as error:
            raise self.error(RelvmUnsupportedError, str(error), operator) from None

    def dim_factor(self) -> AnyDim:
        if self.token.kind == "int":
            token = self.take()
            return int(token.text) if len(token.text) < 40 else self.in_range(token, 1 << 64)
        if self.accept("-"):
            self.enter_level()
            factor = self.dim_factor()
            self.depth -= 1
            return -factor
        if self.accept("("):
            dim = self.dim_sum()
            self.expect(")")
            return dim
        token = self.expect_kind("name", "a dimension")
        name = token.text
        if name in ("min", "max"):
            self.expect("(")
            left = self.dim_sum()
            self.expect(",")
            right = self.dim_sum()
            self.expect(")")
            return self.dim_operation(token, left, right)
        if name in DIM_KEYWORDS:
            self.position -= 1
            raise self.unexpected("a dimension")
        if name not in self.dims:
            self.dims[name] = dim_var(name, signed=self.in_scalar)
        return self.dims[name]
