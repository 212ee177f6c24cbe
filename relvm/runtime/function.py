"""Functions of an executable on a machine, as Python callables."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from relvm._native import ffi, lib
from relvm.bytecode.program import scalar_kind
from relvm.display import short_text
from relvm.errors import RelvmArgumentError, RelvmBusyError, RelvmTypeError, near_matches
from relvm.quoting import terminal
from relvm.runtime.binding import Reference
from relvm.runtime.closure import Closure
from relvm.runtime.convert import FUNCTION
from relvm.runtime.invoke import Invoker, PreparedCall
from relvm.runtime.python_arguments import advice
from relvm.runtime.signature import instance_property, python_signature, signature_types
from relvm.runtime.status import uncopyable

_NUMPY_KINDS = {"i64": np.integer, "f64": np.floating, "bool": np.bool_}  # a scalar type -> what converts to it


class _Doc:
    """A descriptor for `__doc__`: the docstring of the class is `text`, that of an instance is its `description()`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: Function | None, owner: type) -> str:
        return self.text if instance is None else instance.description()


class Function(Closure):
    """A function of an executable on a machine.  Call it with arguments by position or by parameter name.

    A Function is also a value that can be passed to a function of the same machine.

    Attributes
    ----------
    name
        The name of the function in the executable.
    index
        The index of the function in the function table.
    inputs
        A call of the function with its pre-bound inputs, or None.
    output
        The result of the last run on the pre-bound inputs, or None.
    """

    __slots__ = ("index", "inputs", "name", "output")
    name: str
    index: int
    inputs: PreparedCall | None
    output: Reference | None

    def __new__(cls, runner: Invoker, name: str, index: int) -> Function:
        words = ffi.new("int64_t[2]")
        ffi.cast("rvm_value *", words)[0] = lib.rvm_machine_function(runner.machine, index)
        assert words[0] == FUNCTION
        function = super().__new__(cls, runner, FUNCTION, words[1])
        function.name = name
        function.index = index
        function.inputs = function.output = None
        return function

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.objects.executable.functions[self.name].parameters

    def _types(self) -> tuple[tuple[str, ...], list[str], str]:
        """Return the names and the types of the parameters, and the type of the result, as stated in the executable."""
        names = self.parameters
        return names, *signature_types(self.objects.executable.signature, self.name, len(names))

    @instance_property
    def __signature__(self) -> inspect.Signature:
        """The parameters and their types, as stated in the executable, for `inspect.signature` and completion."""
        return python_signature(*self._types())

    def description(self) -> str:
        """Return the docstring of this function, which contains its parameters and its result with their types."""
        names, types, result = self._types()
        lines = [f"{self.name}: a function of an executable.  Call it with arguments by position or by name."]
        if names:
            lines += ["", "Parameters", "----------"]
            lines += [f"{name} : {kind}" if kind else name for name, kind in zip(names, types, strict=True)]
        if result:
            lines += ["", "Returns", "-------", result]
        return "\n".join(map(terminal, lines))

    def call_indirect(self, /, *arguments: Any, **named: Any) -> Any:
        """Handle a call that the C binding passes on to Python.

        The C binding passes on calls with arguments by parameter name.  It also passes on all calls of a function with
        pre-bound inputs, which are rejected here.

        Raises
        ------
        RelvmArgumentError
            There are too few or too many arguments, an argument name is unknown, `VirtualMachine.set_input` has set
            inputs of the function, or the machine is closed.
        RelvmError
            The error that the machine raises.
        """
        self.objects.expect_open(self.name)
        if self.inputs is not None:
            raise self.inputs_bound_error()
        return self.call(*self.order_arguments(arguments, named))

    def prepare(self, arguments: tuple, named: Mapping[str, Any]) -> PreparedCall:
        """Convert the arguments once, and return a PreparedCall that runs the function on them any number of times."""
        ordered = self.order_arguments(arguments, named)
        plain = [
            self.plain_argument(k, each) if isinstance(each, np.generic) else each for k, each in enumerate(ordered)
        ]
        return PreparedCall(self.objects, self.name, self.index, plain, self.argument_name)

    def prepared_call(self, arguments: tuple, named: Mapping[str, Any]) -> PreparedCall:
        """Return a PreparedCall with the given arguments or, if none are given, with the pre-bound inputs, if there are
        any.  Raise RelvmArgumentError if arguments are given although inputs are pre-bound.
        """
        if self.inputs is None:
            return self.prepare(arguments, named)
        if arguments or named:
            raise self.inputs_bound_error()
        return self.inputs

    def set_inputs(self, arguments: tuple, named: Mapping[str, Any]) -> None:
        """Pre-bind the inputs, so that a direct call is an error.  See VirtualMachine.set_input."""
        self.inputs, self.output = self.prepare(arguments, named), None
        self.direct = False

    def clear_inputs(self) -> None:
        """Remove the pre-bound inputs and the output, if there are any."""
        self.inputs = self.output = None
        self.direct = True

    def run_on_inputs(self) -> None:
        """Run the function on its pre-bound inputs, and store the result in `output`, or None if the run failed."""
        if self.inputs is None:
            raise RelvmArgumentError(f"{self.name}: no inputs are set; call set_input({self.name!r}, ...) first")
        try:
            self.output = self.inputs.run()
        except RelvmBusyError:  # the function did not run
            raise
        except BaseException:
            self.output = None
            raise

    def expect_output(self) -> Reference:
        """Return `output`.  Raise RelvmArgumentError if it is None."""
        if self.output is None:
            raise RelvmArgumentError(f"{self.name}: no outputs yet; call set_input and invoke_stateful first")
        return self.output

    def plain_argument(self, k: int, value: np.generic) -> Any:
        """Return `value` as the number that argument k should be, or unchanged if it should be a tensor.

        A value of another kind than the parameter is returned unchanged, and the function rejects it.
        """
        _, types, _ = self._types()
        kind = _NUMPY_KINDS.get(scalar_kind(types[k])) if k < len(types) else None
        return value.item() if kind is not None and isinstance(value, kind) else value

    def run_error(self, arguments: tuple, status: int, result: Any) -> BaseException:
        """Return the exception of a failed run, with advice if an argument has the wrong dtype.

        arguments: the arguments of the run.   status, result: its status, and its result, which contains the error.
        """
        error = super().run_error(arguments, status, result)
        if isinstance(error, RelvmTypeError):
            names, types, _ = self._types()
            if text := advice(names, types, arguments):
                error.args = (f"{error}{text}",)
        return error

    def argument_name(self, k: int) -> str:
        """Return the name of argument k for messages, or its number if it has no name."""
        return f"{self.name}: argument {self.parameters[k] if k < len(self.parameters) else k}"

    def inputs_bound_error(self) -> RelvmArgumentError:
        """Return the error that is raised if the function is called directly while its inputs are pre-bound."""
        return RelvmArgumentError(
            f"{self.name}: the inputs are already set; run it with invoke_stateful({self.name!r}), or call"
            f" clear_input({self.name!r}) first"
        )

    def order_arguments(self, arguments: tuple, named: Mapping[str, Any]) -> list[Any]:
        """Return all arguments in the order of the parameters.

        arguments, named: the arguments by position and by name.  Raise RelvmArgumentError if they do not match the
        parameters.
        """
        parameters = self.parameters
        expected = f"{self.name} has the parameters {', '.join(parameters) or 'none'}"
        if len(arguments) > len(parameters):
            raise RelvmArgumentError(f"got {len(arguments)} positional arguments, but {expected}")
        for name in named:
            if name not in parameters:
                raise RelvmArgumentError(f"unknown argument {name}: {expected}{near_matches(name, parameters)}")
            if name in parameters[: len(arguments)]:
                raise RelvmArgumentError(f"argument {name} is given both by position and by name: {expected}")
        rest = parameters[len(arguments) :]
        missing = [name for name in rest if name not in named]
        if missing:
            raise RelvmArgumentError(f"missing argument {', '.join(missing)}: {expected}")
        return [*arguments, *(named[name] for name in rest)]

    def __repr__(self) -> str:
        names, types, result = self._types()
        typed = (f"{name}: {kind}" if kind else name for name, kind in zip(names, types, strict=True))
        arrow = f" -> {result}" if result else ""
        return short_text(terminal(f"<function {self.name}({', '.join(typed)}){arrow} of a machine>"))


Function.__doc__ = _Doc(Function.__doc__ or "")  # type: ignore[assignment]


class SavedFunction:
    """A function together with all its arguments, called as `saved()`.  See VirtualMachine.save_function."""

    __slots__ = ("include_return", "name", "prepared")

    def __init__(self, name: str, prepared: PreparedCall, include_return: bool) -> None:
        self.name = name
        self.prepared = prepared
        self.include_return = include_return

    def __call__(self, /, *arguments: Any, **named: Any) -> Any:
        """Run the function with the saved arguments.  Return its result, or None if `include_return` is false.

        Raise RelvmArgumentError if arguments are given.
        """
        prepared = self.prepared_call(arguments, named)
        if self.include_return:
            return prepared.value()
        prepared.run()
        return None

    def __reduce__(self) -> NoReturn:
        raise uncopyable(self)

    def prepared_call(self, arguments: tuple, named: Mapping[str, Any]) -> PreparedCall:
        """Return the PreparedCall.  Raise RelvmArgumentError if arguments are given, because all are already bound."""
        if arguments or named:
            raise RelvmArgumentError(f"all arguments of {self.name} are already bound; call it without arguments")
        return self.prepared

    def __repr__(self) -> str:
        return terminal(f"<saved function {self.name} of a machine: {self.prepared.name} with its arguments>")
