"""The functions of scripts and kernels that are neither operators nor functions of the program."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
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
    raise _outside_a_script("call_kernel")


def const(type: str, elements: Any) -> Any:
    """Return a constant tensor, in a script.

    Parameters
    ----------
    type
        The type of the tensor, such as `f32[2, 2]`.
    elements
        A number, or nested lists of numbers.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise _outside_a_script("const")


def match_cast(value: Any, type: str) -> Any:
    """Return `value` as a value of another type, in a script.  The type is checked at run time.

    Parameters
    ----------
    value
        A value of the program.
    type
        The type, such as `f32[m]`.  A size that is not defined yet, here m, gets the size of the value.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise _outside_a_script("match_cast")


def packed(function: str, *args: Any, result: str = "object", pure: bool = False) -> Any:
    """Call a function of the host, in a script.

    Parameters
    ----------
    function
        The name with which the function is registered (`vm.register_func`).
    args
        The arguments.
    result
        The type of the result, such as `f32[n]`.
    pure
        Whether the function has no side effects.  A call whose result is not used is then removed.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise _outside_a_script("packed")


def partial(function: Callable[..., Any], *args: Any) -> Any:
    """Return a function that calls `function` with `args` as its last arguments, in a script.

    Parameters
    ----------
    function
        A function of the program.
    args
        Its last arguments.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise _outside_a_script("partial")


def shape(*sizes: int) -> Any:
    """Return the shape with the given sizes, in a script.

    Parameters
    ----------
    sizes
        Integers, dimension variables, and sums, differences and products of them.

    Raises
    ------
    RelvmTypeError
        The function is called outside a script.
    """
    raise _outside_a_script("shape")


def _outside_a_script(name: str) -> RelvmTypeError:
    return RelvmTypeError(f"{name} can only be called in a function decorated with @script")


SCRIPT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    function.__name__: function for function in (call_kernel, const, match_cast, packed, partial, shape)
}


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
