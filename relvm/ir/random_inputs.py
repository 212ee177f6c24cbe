"""Random values of a type, used as sample inputs of a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from relvm.errors import RelvmArgumentError
from relvm.ir.symbolic import evaluate_with
from relvm.ir.types import TensorType, Type, format_type


def random_array(type_: Type, sizes: Mapping[str, int], rng: np.random.Generator) -> np.ndarray:
    """Return an array of `type_` with random elements: floats from the normal distribution, or integers in [0, 2).

    Parameters
    ----------
    type_
        A tensor type.
    sizes
        The sizes of the type's dimension variables by name.  A variable without an entry, and an axis of unknown size,
        have size 1.

    Raises
    ------
    RelvmArgumentError
        The type is not a tensor type of known dtype and rank, a size is negative, or NumPy does not support so many
        axes or elements.
    """
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.rank is None:
        raise RelvmArgumentError(
            f"cannot create a random value of type {type_}; expected a tensor of known dtype and rank"
        )
    dims = type_.shape if type_.shape is not None else (1,) * type_.rank
    found = [evaluate_with(dim, lambda var: sizes.get(var.name, 1)) for dim in dims]
    shape = [size for size in found if isinstance(size, int) and size >= 0]
    if len(shape) < len(found):
        raise RelvmArgumentError(f"the sizes make a dimension of type {type_} negative")
    try:
        values = rng.standard_normal(shape) if type_.dtype.is_float else rng.integers(0, 2, shape)
    except ValueError as error:  # more axes or elements than NumPy supports
        raise RelvmArgumentError(f"cannot create an array of type {format_type(type_):.200}: {error}") from None
    return np.asarray(values).astype(type_.dtype.numpy)
