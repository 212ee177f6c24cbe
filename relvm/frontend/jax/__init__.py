"""Import of JAX functions, from the jaxpr to which JAX traces them.  Importing this package does not import JAX."""

from relvm.frontend.jax.from_jax import from_jax

__all__ = ["from_jax"]
