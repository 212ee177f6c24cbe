"""The names that programs import for scripts and kernels."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from relvm.errors import RelvmTypeError


def call_kernel(kernel: Any, *args: Any, result: str = "") -> Any:
    """Call a kernel in a script.  A script can also call a kernel like a function.

    Parameters
    ----------
    kernel
        A function decorated with `@kernel`.
    args
        The inputs of the kernel.
    result
        The type of the result, such as `f32[n, m]`.  `result` is required if the sizes of the inputs do not determine
        the size of an output.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise RelvmTypeError(f"call_kernel({kernel!r}) can only be called in a function decorated with @script")


def grid(*sizes: int) -> Iterator[tuple[int, ...]]:
    """Yield the indices of a grid with the given sizes in row-major order.

    In a kernel, a loop over the grid becomes nested `range` loops.

    Raises
    ------
    RelvmTypeError
        A size is not an integer.

    Examples
    --------
    >>> list(grid(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return itertools.product(*(_range("grid", (size,)) for size in sizes))


def simd(*bounds: int) -> range:
    """Return `range(*bounds)`.  In a kernel, the iterations may run as vector lanes.

    Raises
    ------
    RelvmTypeError
        The bounds are not one, two or three integers.
    """
    return _range("simd", bounds)


def parallel(*bounds: int) -> range:
    """Return `range(*bounds)`.  In a kernel, the iterations may run in several threads.

    Raises
    ------
    RelvmTypeError
        The bounds are not one, two or three integers.
    """
    return _range("parallel", bounds)


def _range(name: str, bounds: tuple[int, ...]) -> range:
    try:
        return range(*bounds)
    except (TypeError, ValueError) as error:
        raise RelvmTypeError(f"{name}: {error}") from None
