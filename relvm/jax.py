"""`relvm.jax.jit`: JAX functions that relvm compiles and runs.

Importing this module does not import JAX.  The first call of a function does.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from relvm.compiler.build import build
from relvm.data_classes import record
from relvm.errors import RelvmArgumentError, RelvmTypeError
from relvm.frontend.jax.avals import array_type, is_float0, is_key
from relvm.frontend.jax.from_jax import import_traced
from relvm.frontend.jax.requirements import import_jax, trace_context
from relvm.ir.expr import Module
from relvm.model import Model
from relvm.runtime.binding import data_address
from relvm.runtime.donated import Donated
from relvm.runtime.tensor import Tensor

__all__ = ["Jitted", "jit"]


def jit(
    function: Callable[..., Any],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Iterable[str] = (),
    donate_argnums: int | Sequence[int] = (),
    donate_argnames: str | Iterable[str] = (),
    exec_mode: str = "auto",
    target: str = "c",
) -> Jitted:
    """Return a function that relvm compiles for the shapes and dtypes of its arguments, and runs.

    The first call with new shapes, dtypes, pytree structures or static arguments traces `function` with JAX, imports
    the jaxpr and builds it.  Later calls run the program that was built.

    Parameters
    ----------
    function
        A function that `jax.jit` accepts.
    static_argnums, static_argnames
        The arguments that are Python values, by position and by name, as for `jax.jit`.  They must be hashable.
    donate_argnums, donate_argnames
        The arguments that the caller does not use afterwards, as for `jax.jit`.  See "Notes".
    exec_mode, target
        The options of `relvm.vm.build`.

    Returns
    -------
    Jitted
        A function that takes the same arguments as `function`.  The leaves of its result are NumPy arrays.  If a leaf
        of the arguments is a jax.Array, they are jax arrays.

    Raises
    ------
    RelvmTypeError
        `function` is not callable.
    RelvmUnsupportedError
        JAX is not installed.  A call also raises this error if relvm does not support some equations.

    Notes
    -----
    A program updates a tensor in place if it is not used afterwards, and if the machine has allocated it.  An argument
    belongs to the caller, so the first update copies it, unless it is a donated jax.Array.  As for `jax.jit`, an
    array is donated only if a result has its shape and dtype.  The call deletes a donated array.  If something else
    uses its memory, such as a NumPy array, JAX copies it first.  Other arguments, such as NumPy arrays, are never
    overwritten.

    Inside of another function that JAX traces, and under `jax.disable_jit`, JAX runs the function.

    Examples
    --------
    >>> import jax.numpy as jnp                                                       # doctest: +SKIP
    >>> relvm.jax.jit(lambda x: jnp.tanh(x).sum())(np.ones(3))                        # doctest: +SKIP
    """
    import_jax("relvm.jax.jit")
    if not callable(function):
        raise RelvmTypeError(f"jit: function: expected a function, got {type(function).__name__}")
    numbers, names = _static_arguments(function, static_argnums, static_argnames)
    options = {"donate_argnums": _as_tuple(donate_argnums, int), "donate_argnames": _as_tuple(donate_argnames, str)}
    return Jitted(function, numbers, names, options, exec_mode, target)


def _as_tuple(value: Any, kind: type) -> tuple[Any, ...]:
    return (value,) if isinstance(value, kind) else tuple(value or ())


def _static_arguments(function: Callable[..., Any], numbers: Any, names: Any) -> tuple[tuple[int, ...], frozenset[str]]:
    """Return the positions and the names of the static arguments.

    If only the positions or only the names are given, the others are inferred from the signature, as `jax.jit` does.
    """
    positions, known = _as_tuple(numbers, int), _as_tuple(names, str)
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return positions, frozenset(known)
    by_name = [each.name for each in parameters if each.kind == each.POSITIONAL_OR_KEYWORD]
    if positions and not known:
        named = (parameters[i].name for i in positions if -len(parameters) <= i < len(parameters))
        known = tuple(name for name in named if name in by_name)
    elif known and not positions:
        positions = tuple(i for i, each in enumerate(parameters) if each.name in known and each.name in by_name)
    return positions, frozenset(known)


@record
class _Compiled:
    """The program for certain shapes, dtypes, pytree structures and static arguments.

    dtypes: the dtype of each leaf of the arguments.
    structure: the structure of the result.
    convert: for each leaf of the result, a function that converts the output of the model to an array.
    donated: the numbers of the leaves that are donated if they are jax arrays.
    results: the shape and the dtype of each leaf of the result.
    """

    model: Model
    dtypes: tuple[np.dtype, ...]
    structure: Any
    convert: tuple[Callable[[Any], Any], ...]
    donated: tuple[int, ...]
    results: tuple[tuple[Any, Any], ...]


@record
class _Plan:
    """How a call with leaves of certain types runs its program.

    compiled: the program.
    arguments: for each leaf, a function that returns the argument of the model, or None if it is the leaf itself.
    donated: the numbers of the leaves that are donated.
    returns_jax: whether the results are jax arrays.
    """

    compiled: _Compiled
    arguments: tuple[Callable[[Any], Any] | None, ...]
    donated: tuple[int, ...]
    returns_jax: bool


class Jitted:
    """A JAX function that relvm compiles and runs.  `relvm.jax.jit` returns it.

    Call it with the arguments of the function.  Any number of threads can call it at the same time.

    Parameters
    ----------
    function
        The function.
    static_numbers, static_names
        The positions and the names of the static arguments.
    options
        The other options of `jax.jit`.
    exec_mode, target
        The options of `relvm.vm.build`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static_numbers: tuple[int, ...],
        static_names: frozenset[str],
        options: dict[str, Any],
        exec_mode: str,
        target: str,
    ) -> None:
        functools.update_wrapper(self, function)
        jax = import_jax("relvm.jax.jit")
        self._jax = jax
        self._flatten = jax.tree_util.tree_flatten
        self._array, self._tracer = jax.Array, jax.core.Tracer
        self._trace_context = trace_context()
        self._static_numbers, self._static_names = static_numbers, static_names
        self._jitted = jax.jit(
            function, static_argnums=static_numbers or None, static_argnames=tuple(static_names) or None, **options
        )
        self._take_over = jax.jit(_identity, donate_argnums=0)
        self._as_jax = jax.jit(_identity)  # converts several arrays at once, in less time than jax.numpy.asarray
        self._exec_mode, self._target = exec_mode, target
        self._compiled: dict[Hashable, _Compiled] = {}
        self._plans: dict[Hashable, _Plan] = {}
        self._is_jax: dict[type, bool] = {np.ndarray: False}  # by the type of a leaf

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        """Return the method of an object, or the function itself for a class."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves, place = self._leaves(args, kwargs)
        try:
            plan = self._plans.get((place, *map(self._kind, leaves)))
        except TypeError:
            plan = None
        if plan is None:
            is_traced = any(isinstance(leaf, self._tracer) for leaf in leaves)  # inside of another function
            if is_traced or self._jax.config.jax_disable_jit:
                return self._jitted(*args, **kwargs)
            plan = self._planned(place, leaves, args, kwargs)
        compiled = plan.compiled
        taken: dict[int, Any] = {}
        if plan.donated:
            result = compiled.model(*self._donated_arguments(plan, leaves, taken))
        else:
            result = compiled.model(*map(_converted, plan.arguments, leaves))
        found = result if len(compiled.convert) != 1 else (result,)
        returned = _returned(compiled, found, taken) if taken else {}
        values = [
            returned[number] if number in returned else convert(each)
            for number, (convert, each) in enumerate(zip(compiled.convert, found, strict=True))
        ]
        values = _separate(values, found, {array.unsafe_buffer_pointer() for array in returned.values()})
        if plan.returns_jax and len(returned) < len(values):
            values = self._all_as_jax(values)
        return compiled.structure.unflatten(values)

    def _kind(self, leaf: Any) -> Hashable:
        """Return a key of a leaf that is found in less time than its signature.

        Leaves with equal keys have equal signatures.
        """
        kind = type(leaf)
        if kind is np.ndarray:
            return leaf.shape, leaf.dtype
        return leaf.aval if self._is_jax.get(kind) else (kind, _signature(leaf))

    def _planned(self, place: Hashable, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Plan:
        """Return how calls such as this run, and store it for later calls.

        place, leaves: the result of `_leaves`.   args, kwargs: the arguments.
        """
        for leaf in leaves:
            kind = type(leaf)
            self._is_jax[kind] = isinstance(leaf, self._array) and not isinstance(leaf, self._tracer)
        key = self._key(place, leaves)
        compiled = self._compiled.get(key) or self._compile(key, args, kwargs)
        arguments = tuple(map(_conversion, leaves, compiled.dtypes))
        are_jax = [self._is_jax[type(leaf)] for leaf in leaves]
        donated = tuple(number for number in compiled.donated if are_jax[number])
        plan = _Plan(compiled, arguments, donated, any(are_jax))
        return self._plans.setdefault((place, *map(self._kind, leaves)), plan)

    def _donated_arguments(self, plan: _Plan, leaves: list[Any], taken: dict[int, Any]) -> list[Any]:
        """Return the arguments of the model, with donations of jax arrays.

        JAX itself moves a donated array to a new one, which only relvm knows.  It copies the elements if something else
        uses their memory.  The other arguments are converted first, so that their memory is in use.

        taken: gets the new arrays, by the addresses of their memory.
        """
        arguments = [
            None if number in plan.donated else _converted(convert, leaf)
            for number, (convert, leaf) in enumerate(zip(plan.arguments, leaves, strict=True))
        ]
        for number in plan.donated:
            array = self._take_over(leaves[number])
            argument = _converted(plan.arguments[number], array)
            if isinstance(argument, np.ndarray):
                try:
                    address = array.unsafe_buffer_pointer()
                except ValueError:  # an array on several devices
                    address = 0
                if _address(argument) == address:  # not a copy
                    taken[address] = array
                    argument = Donated.of_view(argument)
            arguments[number] = argument
        return arguments

    def _all_as_jax(self, values: list[Any]) -> list[Any]:
        """Return the leaves of a result with jax arrays in the place of NumPy arrays, if JAX has their dtypes."""
        given = {
            number: value
            for number, value in enumerate(values)
            if isinstance(value, np.ndarray) and not is_float0(value.dtype)
        }
        converted = dict(zip(given, self._as_jax([*given.values()]), strict=True))
        return [converted.get(number, value) for number, value in enumerate(values)]

    def module(self, /, *args: Any, **kwargs: Any) -> Module:
        """Return the module that runs for some arguments.

        args, kwargs: the arguments, of which the leaves can be instances of jax.ShapeDtypeStruct.
        """
        return import_traced(self._jitted.trace(*args, **kwargs))

    def model(self, /, *args: Any, **kwargs: Any) -> Model:
        """Return the model that runs for some arguments.  Its inputs and outputs are leaves of pytrees.

        args, kwargs: the arguments, as for `module`.
        """
        leaves, place = self._leaves(args, kwargs)
        key = self._key(place, leaves)
        return (self._compiled.get(key) or self._compile(key, args, kwargs)).model

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Hashable]:
        """Return the leaves of the arguments that are not static, and everything else on which tracing depends."""
        static: tuple[Any, ...] = ()
        if self._static_numbers or self._static_names:
            numbers = {number % len(args) for number in self._static_numbers if -len(args) <= number < len(args)}
            named = sorted(self._static_names & kwargs.keys())
            values = (*((i, args[i]) for i in sorted(numbers)), *((name, kwargs[name]) for name in named))
            static = tuple((place, type(value), value) for place, value in values)  # 1 and True are equal
            args = tuple(value for i, value in enumerate(args) if i not in numbers)
            kwargs = {name: value for name, value in kwargs.items() if name not in self._static_names}
        leaves, structure = self._flatten((args, kwargs))
        return leaves, (structure, static, self._trace_context())

    def _key(self, place: Hashable, leaves: list[Any]) -> Hashable:
        """Return the key of the program for some arguments.   The parameters are the result of `_leaves`."""
        key = (place, *map(_signature, leaves))
        try:
            hash(key)
        except TypeError:
            assert isinstance(place, tuple)
            unhashable = ", ".join(repr(value) for _, _, value in place[1])
            raise RelvmArgumentError(f"a static argument is not hashable: {unhashable}") from None
        return key

    def _compile(self, key: Hashable, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Compiled:
        """Build the program for some arguments, and store it.   key: the result of `_key`."""
        traced = self._jitted.trace(*args, **kwargs)
        module = import_traced(traced)
        executable = build(module, self._exec_mode, self._target)
        dtypes = tuple(np.dtype(array_type(var.aval)[1]) for var in traced.jaxpr.jaxpr.invars)
        results, structure = self._flatten(traced.out_info)
        donated = _usable_donations(self._jax.tree_util.tree_leaves(traced.args_info), results)
        conversions = tuple(map(self._conversion_of_result, results))
        kinds = tuple((result.shape, result.dtype) for result in results)
        compiled = _Compiled(Model(executable, source=module), dtypes, structure, conversions, donated, kinds)
        return self._compiled.setdefault(key, compiled)

    def _conversion_of_result(self, aval: Any) -> Callable[[Any], Any]:
        """Return a function that converts an output of the model to the array that `aval` describes."""
        if is_key(aval.dtype):
            wrap = self._jax.random.wrap_key_data
            return lambda value: wrap(np.asarray(value), impl=aval.dtype._impl.name)
        if is_float0(aval.dtype):
            return lambda value: np.zeros(aval.shape, aval.dtype)
        return _complex_array if aval.dtype.kind == "c" else np.asarray


def _identity(x: Any) -> Any:
    return x


def _address(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _usable_donations(arguments: Sequence[Any], results: Sequence[Any]) -> tuple[int, ...]:
    """Return the numbers of the donated leaves for which there are results of the same shape and dtype.

    arguments, results: a description of each leaf by JAX.
    """
    available = Counter((result.shape, result.dtype) for result in results)
    found = []
    for number, argument in enumerate(arguments):
        key = (argument.shape, argument.dtype)
        if argument.donated and available[key]:
            available[key] -= 1
            found.append(number)
    return tuple(found)


def _signature(leaf: Any) -> Hashable:
    """Return the part of a leaf on which tracing depends: its shape and dtype, or the type of a Python number."""
    if type(leaf) is np.ndarray:  # most leaves are arrays
        return leaf.shape, leaf.dtype, False
    if isinstance(leaf, bool | int | float | complex):
        return type(leaf).__name__
    if not hasattr(leaf, "shape") or not hasattr(leaf, "dtype"):
        raise RelvmTypeError(f"expected arrays, numbers and pytrees of these as arguments, got {type(leaf).__name__}")
    return leaf.shape, leaf.dtype, getattr(leaf, "weak_type", False)


def _conversion(leaf: Any, dtype: np.dtype) -> Callable[[Any], Any] | None:
    """Return a function that converts leaves such as this to the model's input, or None if a leaf is the input itself.

    dtype: the dtype of the array that represents the leaf.
    """
    found = getattr(leaf, "dtype", None)
    if found == dtype and dtype.kind != "c":
        return None if type(leaf) is np.ndarray else np.asarray
    return functools.partial(_argument, dtype=dtype)


def _converted(convert: Callable[[Any], Any] | None, leaf: Any) -> Any:
    return leaf if convert is None else convert(leaf)


def _argument(leaf: Any, dtype: np.dtype) -> Any:
    """Convert a leaf of the arguments to the model's input.   dtype: the dtype of the array that represents it."""
    found = getattr(leaf, "dtype", None)
    if found != dtype and found is not None and is_key(found):
        leaf = import_jax("relvm.jax.jit").random.key_data(leaf)
    array = np.asarray(leaf, dtype)
    return (np.array(array.real), np.array(array.imag)) if dtype.kind == "c" else array


def _returned(compiled: _Compiled, found: Sequence[Any], taken: dict[int, Any]) -> dict[int, Any]:
    """Return the donated arrays whose memory the leaves of a result have, by the numbers of the leaves.

    found: the leaves as the model returns them.   taken: the donated arrays by their addresses.
    """
    returned: dict[int, Any] = {}
    for number, (value, result) in enumerate(zip(found, compiled.results, strict=True)):
        array = taken.get(data_address(value)) if type(value) is Tensor else None
        if array is not None and (array.shape, array.dtype, array.weak_type) == (*result, False):
            returned[number] = taken.pop(data_address(value))
    return returned


def _separate(values: list[Any], found: Sequence[Any], addresses: set[int]) -> list[Any]:
    """Return the leaves of a result, with copies of arrays that are read-only or have the memory of an earlier leaf.

    A program can return the same tensor twice, or a constant.

    found: the leaves as the model returns them.
    addresses: the addresses of memory that donated arrays have, which are also leaves.  Those of the others are added.
    """
    for number, value in enumerate(values):
        if not isinstance(value, np.ndarray) or not value.size:
            continue
        if len(values) == 1:
            is_shared = False
        else:
            tensor = found[number]
            address = data_address(tensor) if type(tensor) is Tensor else _address(value)
            is_shared = address in addresses
            addresses.add(address)
        if is_shared or not value.flags.writeable:
            values[number] = value.copy()
    return values


def _complex_array(value: Any) -> np.ndarray:
    """Return an array of complex numbers.   value: the real and the imaginary parts."""
    real, imaginary = (np.asarray(part) for part in value)
    array = np.empty(real.shape, f"c{2 * real.dtype.itemsize}")
    array.real, array.imag = real, imaginary
    return array
