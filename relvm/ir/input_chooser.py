"""Random inputs of a function.  Symbolic sizes are chosen by trial: sizes typical of such inputs, then common ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from relvm.data_classes import value_record
from relvm.errors import RelvmArgumentError, RelvmIndexError, RelvmShapeError
from relvm.ir.random_inputs import random_array
from relvm.ir.symbolic import as_var, evaluate_with, known_size
from relvm.ir.types import PrimType, TensorType, Type, type_vars
from relvm.ir.typical_inputs import typical_array, typical_sizes

_MAX_ELEMENTS = 1 << 23  # limit on the total elements of the inputs when sizes are chosen after a failure
_USUAL_SIZES = (2, 4, 8, 16, 32, 64, 128, 224, 256, 320, 512, 1024, 4096, 16000)


@value_record
class ChosenInputs:
    """The inputs of a function.

    values: a value for each input.
    sizes: the symbolic sizes that were chosen, by name.
    described: for each input whose elements are not from `random_array`, a description of its elements, by input name.
    """

    values: list[Any]
    sizes: dict[str, int]
    described: dict[str, str]


class InputChooser:
    """Chooses random values for the inputs of a function that are not given.

    Parameters
    ----------
    names, types
        The names and the types of the inputs.
    given
        The given values, by the name of the input.
    sizes
        The given symbolic sizes, by name.  The sizes of given values are added to them.
    seed
        The seed of the random values.
    max_elements
        Limit on the total number of elements of the inputs, or None.
    generator
        A function that makes a generator of random numbers from the seed.
    """

    def __init__(
        self,
        names: Sequence[str],
        types: Sequence[Type],
        given: Mapping[str, Any],
        sizes: Mapping[str, int],
        seed: int = 0,
        max_elements: int | None = None,
        generator: Callable[[int], Any] = np.random.default_rng,
    ) -> None:
        self.names, self.types, self.given, self.seed = names, types, given, seed
        self.max_elements, self.generator = max_elements, generator
        self.symbols = list(dict.fromkeys(var.name for type_ in types for var in type_vars(type_)))
        self.sizes = dict(sizes)
        for name, type_ in zip(names, types, strict=True):
            if name in given and isinstance(type_, TensorType):
                for dim, size in zip(type_.shape or (), np.shape(given[name]), strict=False):
                    if (var := as_var(dim)) is not None:
                        self.sizes.setdefault(var.name, size)
        self.free = [symbol for symbol in self.symbols if symbol not in self.sizes]

    def choose(self, run: Callable[[list[Any]], Any]) -> ChosenInputs:
        """Try candidates for the symbolic sizes in order.  Return the first inputs for which `run` succeeds.

        A candidate is rejected if `run` raises a shape or index error.

        run: a function that runs the compiled function on a list of arguments.

        Raise RelvmArgumentError if no candidate works, if there are too many elements, or if there are no random values
        of a type.
        """
        failed = None
        tried: list[tuple[dict[str, int], bool]] = []
        for candidate in self._candidates():
            if candidate in tried:
                continue
            tried.append(candidate)
            sizes, is_typical = candidate
            count = self._element_count(self.sizes | sizes)
            if failed and count > _MAX_ELEMENTS:
                continue
            if self.max_elements is not None and count > self.max_elements:
                raise RelvmArgumentError(f"the inputs have {count:,} elements, expected at most {self.max_elements:,}")
            values, described = self._draw(self.sizes | sizes, is_typical)
            try:
                if self.free or described:
                    run(values)
            except (RelvmShapeError, RelvmIndexError) as error:
                failed = failed or error
                continue
            return ChosenInputs(values, sizes, described)
        raise RelvmArgumentError(
            f"found no working sizes for {', '.join(self.free)} (with the first ones: {failed})"
        ) from failed

    def _candidates(self) -> Iterator[tuple[dict[str, int], bool]]:
        """Yield candidates: pairs of the sizes that are not given, and whether values are drawn by `typical_array`.

        Otherwise, values are drawn by `random_array`.  The first candidate has typical sizes, or 1 where no typical
        size is known, and typical values.  The second has the same sizes and values of `random_array`.  In the
        third, all sizes are 1.  For each common size, such as 32, two candidates follow: 1 for batch sizes and 32 for
        the others, then 32 for all.  Batch sizes are those with a name like `batch` or `n`.  If no size has such a
        name, the first size counts as a batch size.
        """
        typical = {name: size for name, size in typical_sizes(self.names, self.types).items() if name in self.free}
        for is_typical in (True, False):
            yield dict.fromkeys(self.free, 1) | typical, is_typical
        yield dict.fromkeys(self.free, 1), False
        batches = [name for name in self.free if re.search("batch|^n$|^b$", name.lower())] or self.free[:1]
        for size in _USUAL_SIZES:
            yield dict.fromkeys(self.free, size) | dict.fromkeys(batches, 1), False
            yield dict.fromkeys(self.free, size), False

    def _element_count(self, sizes: dict[str, int]) -> int:
        """Return the total number of elements of all inputs for the given sizes."""
        dims = [type_.shape or () for type_ in self.types if isinstance(type_, TensorType)]
        return sum(
            math.prod(known_size(evaluate_with(dim, lambda var: sizes[var.name])) for dim in shape) for shape in dims
        )

    def _draw(self, sizes: dict[str, int], is_typical: bool) -> tuple[list[Any], dict[str, str]]:
        """Return a value for each input, and descriptions of those that are not from `random_array`, by name."""
        rng = self.generator(self.seed)
        values: list[Any] = []
        described: dict[str, str] = {}
        for name, type_ in zip(self.names, self.types, strict=True):
            if name in self.given:
                values.append(self.given[name])
                continue
            try:
                value, text = _random_value(name, type_, sizes, rng, is_typical)
            except RelvmArgumentError as error:
                raise RelvmArgumentError(f"input {name}: {error}") from None
            values.append(value)
            if text:
                described[name] = text
        return values, described


def _random_value(
    name: str, type_: Type, sizes: Mapping[str, int], rng: np.random.Generator, is_typical: bool
) -> tuple[Any, str]:
    """Return a random value of a type, and a description, which is "" if the value is from `random_array`."""
    if isinstance(type_, PrimType):
        if type_.value is not None:
            return known_size(evaluate_with(type_.value, lambda var: sizes.get(var.name, 1))), ""
        return random_array(TensorType(type_.dtype, ()), sizes, rng).item(), ""
    return typical_array(name, type_, sizes, rng) if is_typical else (random_array(type_, sizes, rng), "")
