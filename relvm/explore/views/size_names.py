"""Short names for symbolic sizes in graphs: `d0`, `d1`, ..."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from relvm.ir.expr import Function, Var
from relvm.ir.node import walk
from relvm.ir.symbolic import AnyDim, DimVar, as_var, dim_var, dim_vars, format_dim, var_dim
from relvm.ir.types import Type, format_type, map_dims, type_vars

_MAX_NAME = 16  # letters; longer names of sizes get a short name
_MAX_EXPRESSION = 8  # and longer expressions


class SizeNames:
    """Replaces long sizes in types by short names.

    Parameters
    ----------
    functions
        The functions whose types are shortened.  Short names differ from the names of all sizes in these functions.
    """

    def __init__(self, functions: Iterable[Function]) -> None:
        types = {part.type for function in functions for part in walk(function) if isinstance(part, Var)}
        self._taken = {var.name for type_ in types for var in type_vars(type_)}
        self._numbers = itertools.count()
        self._short: dict[AnyDim, AnyDim] = {}
        self.sizes: dict[str, str] = {}  # short name -> the size, in which variables have their short names

    def format(self, type_: Type) -> str:
        """Return the text of a type with short names in the place of long sizes."""
        return format_type(map_dims(self._shortened, type_))

    def _shortened(self, dim: AnyDim) -> AnyDim:
        if isinstance(dim, int) or len(format_dim(dim)) <= (_MAX_EXPRESSION if as_var(dim) is None else _MAX_NAME):
            return dim
        if dim not in self._short:
            for var in dim_vars(dim):  # first those that occur in the size
                if dim != var_dim(var):
                    self._shortened(var_dim(var))
            text = format_dim(dim, self._name_of) if as_var(dim) is None else format_dim(dim)
            self._short[dim] = dim_var(self._new_name())
            self.sizes[format_dim(self._short[dim])] = text
        return self._short[dim]

    def _name_of(self, var: DimVar) -> str:
        return format_dim(self._short.get(var_dim(var), var_dim(var)))

    def _new_name(self) -> str:
        return next(name for number in self._numbers if (name := f"d{number}") not in self._taken)
