"""`from_jax`: import a JAX function as a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relvm.data_classes import record
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError, counted, resources
from relvm.frontend.jax.avals import type_of_aval
from relvm.frontend.jax.importer import JaxprImporter
from relvm.frontend.jax.leaves import equations_in, is_leaf, lower_leaves
from relvm.frontend.jax.requirements import import_jax
from relvm.frontend.jax.sizes import parameter_sizes
from relvm.frontend.stablehlo.importer import identifier
from relvm.ir.expr import Module
from relvm.ir.symbolic import AnyDim, dim_var


def from_jax(
    function: Callable[..., Any],
    /,
    *example_args: Any,
    dynamic: Any = None,
    static_argnums: Any = (),
    name: str = "main",
    **example_kwargs: Any,
) -> Module:
    """Import a JAX function.

    JAX traces the function with the example arguments to a jaxpr.  The loops and conditionals of `jax.lax` and the
    functions under `jax.jit` stay visible in the module.

    Parameters
    ----------
    function
        A function that `jax.jit` accepts, or the result of `jax.jit`.
    *example_args, **example_kwargs
        The arguments: arrays, numbers, instances of jax.ShapeDtypeStruct, and pytrees of these.  Only their shapes and
        dtypes matter.
    dynamic
        The symbolic sizes of the arguments: None, or a sequence with an item for each argument.  An item is None, a
        string such as "b, 3", or a pytree of these that is a prefix of the argument, as in
        `jax.export.symbolic_args_specs`.  A size such as `b` becomes a symbolic dimension of at least 1.
    static_argnums
        The positions of arguments that are Python values, as for `jax.jit`.  Ignored if `function` is the result of
        `jax.jit`.
    name
        The name of the function in the module.

    Returns
    -------
    Module
        A module with the function `name`.  Its parameters are the leaves of the arguments, and it returns the leaves of
        the result, in the order of `jax.tree.flatten`: a tuple, unless there is exactly one.  A complex tensor is a
        tuple of its real and its imaginary part.  A random key is its key data.

    Raises
    ------
    RelvmUnsupportedError
        JAX is not installed, or relvm does not support some equations.  The message lists up to 100 of them, with the
        source lines.
    RelvmTypeError
        `function` is not callable.
    RelvmArgumentError
        `dynamic` does not fit the arguments.
    RelvmShapeError
        JAX cannot trace the function with symbolic sizes, for example because it compares two of them.  Or no size of
        an argument determines a symbolic dimension: each must occur in a size that is linear in it, such as `2*b + 1`.

    Examples
    --------
    >>> import jax.numpy as jnp                                                       # doctest: +SKIP
    >>> from_jax(lambda x, y: jnp.dot(x, y), jnp.ones((2, 3)), jnp.ones(3))           # doctest: +SKIP
    """
    jax = import_jax("from_jax")
    if not callable(function):
        raise RelvmTypeError(f"from_jax: function: expected a function, got {type(function).__name__}")
    args: tuple[Any, ...] = example_args
    if dynamic is not None:
        args = _symbolic_args(example_args, dynamic)
    jitted = function if hasattr(function, "trace") else jax.jit(function, static_argnums=static_argnums)
    with resources("from_jax"):
        return import_traced(_trace(jitted, args, example_kwargs, is_symbolic=dynamic is not None), name)


def _trace(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_symbolic: bool) -> Any:
    """Trace a function.   is_symbolic: whether sizes are symbolic, so that an error can be due to them."""
    try:
        return jitted.trace(*args, **kwargs)
    except Exception as error:  # errors of shape_poly have no public class
        if not is_symbolic or not (isinstance(error, TypeError) or type(error).__module__.startswith("jax.")):
            raise
        reason = " ".join(str(error).split())
        raise RelvmShapeError(f"from_jax: JAX cannot trace the function with these symbolic sizes: {reason}") from error


def _symbolic_args(args: tuple[Any, ...], dynamic: Any) -> tuple[Any, ...]:
    """Return the arguments as instances of jax.ShapeDtypeStruct with symbolic shapes."""
    from jax.export import is_symbolic_dim, symbolic_args_specs
    from jax.tree_util import tree_leaves

    if isinstance(dynamic, str) or not isinstance(dynamic, list | tuple) or len(dynamic) != len(args):
        raise RelvmArgumentError(
            f"from_jax: dynamic: expected a sequence of {counted(len(args), 'item')}, one for each argument,"
            f" got {dynamic!r}"
        )
    try:
        specs = tuple(symbolic_args_specs(args, tuple(dynamic)))
    except (TypeError, ValueError) as error:
        raise RelvmArgumentError(f"from_jax: dynamic: {' '.join(str(error).split())}") from None
    for number, (arg, spec) in enumerate(zip(args, specs, strict=True)):
        for leaf, found in zip(tree_leaves(arg), tree_leaves(spec), strict=True):
            given = np.shape(leaf)
            fits = len(given) == len(found.shape) and all(
                is_symbolic_dim(size) or size == actual for size, actual in zip(found.shape, given, strict=True)
            )
            if not fits:
                raise RelvmArgumentError(
                    f"from_jax: dynamic: the shape ({', '.join(map(str, found.shape))}) of argument {number} does not"
                    f" fit the example of shape {given}"
                )
    return specs


@record
class Parameters:
    """The parameters of a traced program.

    names: a name for each leaf of the arguments.
    outputs: a name for each leaf of the result.
    """

    names: tuple[str, ...]
    outputs: tuple[str, ...]


def import_traced(traced: Any, name: str = "main") -> Module:
    """Import a traced function, the result of `jax.jit(f).trace(...)`.   The errors are those of `from_jax`.

    name: the name of the function in the module.
    """
    jax = import_jax("from_jax")
    closed = traced.jaxpr
    place = f"from_jax({traced.fun_name})"
    dims, sizes = _dims(closed.jaxpr)
    leaves = [each for each in equations_in(closed.jaxpr) if is_leaf(each)]
    lowered = lower_leaves(leaves, sizes, place)
    importer = JaxprImporter(place, lowered, dims)
    parameters = _parameters(jax, traced)
    types = [type_of_aval(var.aval, dims) for var in closed.jaxpr.invars]
    sizes_of_parameters = parameter_sizes(types, parameters.names, dims, place)
    attributes: dict[str, Any] = {"output_names": parameters.outputs}
    if dims:
        attributes["lower_bounds"] = sizes_of_parameters.lower_bounds
    return importer.import_main(closed, parameters.names, sizes_of_parameters, name, tuple(attributes.items()))


def _dims(jaxpr: Any) -> tuple[dict[str, AnyDim], list[Any]]:
    """Return the dimension variable for each name in the symbolic shapes of the parameters, and the symbolic dimensions
    of JAX in the same order.
    """
    from jax.export import is_symbolic_dim

    found: dict[str, Any] = {}
    for var in jaxpr.invars:
        for size in getattr(var.aval, "shape", ()):
            if is_symbolic_dim(size):
                found.update(dict.fromkeys(size.get_vars(), size))
    dims: Mapping[str, AnyDim] = {name: dim_var(name) for name in found}
    return dict(dims), [_variable(size, name) for name, size in found.items()]


def _variable(size: Any, name: str) -> Any:
    """Return the symbolic dimension `name` of JAX, in the scope of `size`."""
    from jax.export import symbolic_shape

    (variable,) = symbolic_shape(name, scope=size.scope)
    return variable


def _parameters(jax: Any, traced: Any) -> Parameters:
    info = traced.jaxpr.jaxpr.debug_info
    names = _unique(info.arg_names or (), len(traced.jaxpr.jaxpr.invars), "x")
    paths = [path for path, _ in jax.tree_util.tree_flatten_with_path(traced.out_info)[0]]
    outputs = [jax.tree_util.keystr(path, simple=True, separator="_") or "output" for path in paths]
    return Parameters(names, _unique(outputs, len(traced.jaxpr.jaxpr.outvars), "output"))


def _unique(names: Any, count: int, default: str) -> tuple[str, ...]:
    """Return `count` distinct identifiers, from names that need not be identifiers or distinct."""
    found: dict[str, None] = {}
    for number in range(count):
        text = str(names[number] or "") if number < len(names) else ""
        name = identifier(text.strip("_"), default) if text else f"{default}{number}"
        name = "_".join(part for part in name.split("_") if part) or f"{default}{number}"
        while name in found:
            name += f"_{number}"
        found[name] = None
    return tuple(found)
