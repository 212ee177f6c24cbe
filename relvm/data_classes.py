"""Decorators for data classes.  Their methods are generated at first use.

A build imports about 200 data classes, and uses half of them.  `dataclasses.dataclass` compiles up to five methods of
each class when the class is defined, which would take a quarter of the time of a small build.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

_Object = TypeVar("_Object")


@overload
def dataclass(
    cls: type[_Object],
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    repr: bool = True,
    slots: bool = False,
    unsafe_hash: bool = False,
) -> type[_Object]: ...
@overload
def dataclass(
    *, eq: bool = True, frozen: bool = False, repr: bool = True, slots: bool = False, unsafe_hash: bool = False
) -> Callable[[type[_Object]], type[_Object]]: ...
@dataclass_transform(field_specifiers=(field,))
def dataclass(
    cls: Any = None,
    /,
    *,
    eq: bool = True,
    frozen: bool = False,
    repr: bool = True,
    slots: bool = False,
    unsafe_hash: bool = False,
) -> Any:
    """`dataclasses.dataclass`, with methods that are generated at first use.

    The options have the same meaning.  `InitVar` and `field(init=False)` are not supported.
    """

    def decorate(cls: type) -> type:
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # else `dataclasses` writes the signature, which takes longer than all the rest
        cls = dataclasses.dataclass(init=False, eq=False, repr=False, slots=slots)(cls)
        methods: dict[str, Any] = {"__init__": _AtFirstUse(cls, "__init__", _frozen_init if frozen else _init)}
        if repr:
            methods["__repr__"] = _repr
        if eq:
            methods["__eq__"] = _AtFirstUse(cls, "__eq__", _eq)
        if unsafe_hash or (eq and frozen):
            methods["__hash__"] = _AtFirstUse(cls, "__hash__", _hash)
        elif eq:
            methods["__hash__"] = None
        if frozen:
            methods["__setattr__"] = methods["__delattr__"] = _reject_assignment
        for name, method in methods.items():
            # A class with __eq__ and without __hash__ gets the __hash__ None from Python.
            if name not in vars(cls) or (name == "__hash__" and vars(cls)[name] is None):
                setattr(cls, name, method)
        return cls

    return decorate if cls is None else decorate(cls)


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def record(cls: type[_Object]) -> type[_Object]:
    """A class decorator for immutable objects that are compared by identity.

    Only type checkers reject an assignment to a field.  Python does not, because it takes longer to create an
    instance of a frozen dataclass.
    """
    return dataclass(eq=False)(cls)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value_record(cls: type[_Object]) -> type[_Object]:
    """A class decorator for immutable objects that are compared by their fields.

    As with `record`, only type checkers reject assignments.
    """
    return dataclass(unsafe_hash=True)(cls)


class _Default:
    """The default of a parameter whose field has a `default_factory`."""

    def __repr__(self) -> str:
        return "<factory>"


_DEFAULT = _Default()


class _AtFirstUse:
    """A method of a class that is generated when it is first looked up, and then replaces this object.

    generate: a function that returns the method for the class.
    """

    def __init__(self, cls: type, name: str, generate: Callable[[type], Any]) -> None:
        self._cls = cls
        self._name = name
        self._generate = generate

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        method = self._generate(self._cls)
        method.__name__, method.__qualname__ = self._name, f"{self._cls.__qualname__}.{self._name}"
        method.__module__ = self._cls.__module__
        setattr(self._cls, self._name, method)
        return method.__get__(instance, owner)


def _init(cls: type, assignment: str = "self.{name} = {value}") -> Any:
    """Return `__init__`, which sets the fields and calls `__post_init__`.

    assignment: the form of the statement that sets a field.
    """
    names: dict[str, Any] = {"_DEFAULT": _DEFAULT, "_set": object.__setattr__}
    positional: list[str] = []
    keyword_only: list[str] = []
    body = []
    for each in fields(cls):
        name = value = parameter = each.name
        if each.default is not MISSING:
            parameter = f"{name}=_default_{name}"
            names[f"_default_{name}"] = each.default
        elif each.default_factory is not MISSING:
            parameter, value = f"{name}=_DEFAULT", f"_factory_{name}() if {name} is _DEFAULT else {name}"
            names[f"_factory_{name}"] = each.default_factory
        (keyword_only if each.kw_only else positional).append(parameter)
        body.append(assignment.format(name=name, value=value))
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ["self", *positional, *(["*", *keyword_only] if keyword_only else [])]
    method = _function(f"({', '.join(parameters)})", body or ["pass"], names)
    method.__annotations__ = {each.name: each.type for each in fields(cls)} | {"return": None}
    return method


def _frozen_init(cls: type) -> Any:
    return _init(cls, "_set(self, {name!r}, {value})")


def _eq(cls: type) -> Any:
    compared = [each.name for each in fields(cls) if each.compare]
    same = f"{_tuple('self', compared)} == {_tuple('other', compared)}"
    return _function("(self, other)", [f"return {same} if other.__class__ is self.__class__ else NotImplemented"], {})


def _hash(cls: type) -> Any:
    hashed = [each.name for each in fields(cls) if (each.compare if each.hash is None else each.hash)]
    return _function("(self)", [f"return hash({_tuple('self', hashed)})"], {})


def _tuple(instance: str, names: list[str]) -> str:
    return f"({''.join(f'{instance}.{name}, ' for name in names)})"


def _function(parameters: str, body: list[str], names: dict[str, Any]) -> Any:
    """Return a function from its source text.  names: the global names of the text."""
    defined: dict[str, Any] = {}
    exec("\n    ".join([f"def function{parameters}:", *body]), names, defined)
    return defined["function"]


def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _reject_assignment(self: object, name: str, *value: object) -> None:
    raise FrozenInstanceError(f"cannot {'assign to' if value else 'delete'} field {name!r}")


def cached_hash(cls: type[_Object]) -> type[_Object]:
    """A class decorator that computes the hash of an object only once, and stores it in the attribute `_hash`.

    The objects must be immutable.  A copy or a pickle does not contain `_hash`, because the hash of a string differs
    between processes.
    """
    compute: Any = cls.__hash__

    def __hash__(self: Any) -> int:
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", compute(self))
            return self._hash

    def __getstate__(self: Any) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    setattr(cls, "__hash__", __hash__)  # noqa: B010  mypy accepts no assignment to a method
    setattr(cls, "__getstate__", __getstate__)  # noqa: B010
    return cls
