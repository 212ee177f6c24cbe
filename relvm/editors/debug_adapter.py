"""Debug adapter: lets editors step through a program with the Debug Adapter Protocol (`relvm dap`).

The specification of the protocol is https://microsoft.github.io/debug-adapter-protocol/specification.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from relvm.data_classes import dataclass
from relvm.errors import RelvmArgumentError, RelvmError, RelvmFormatError
from relvm.explore.debugger.debug_info import is_unwritten
from relvm.explore.debugger.debugger import Debugger
from relvm.explore.debugger.frames import Frame, Stop
from relvm.explore.draw.format_value import describe_value

_THREAD = 1  # the ID of the only thread
_MAX_BYTES = 1 << 24  # limit on the size of a message
_POLL_SECONDS = 0.001
_WHOLE = 1 << 30  # more instructions than a function has
_REASONS = {"interrupt": "pause", "nan": "exception", "error": "exception"}  # other reasons keep their names
_FRAME_REFERENCES = 1 << 20  # the protocol's reference to the registers of frame k is this number plus k


@dataclass(frozen=True)
class Launch:
    """A program to debug.

    debugger: the debugger of the program.
    function, arguments: the function to run, and its arguments.
    """

    debugger: Debugger
    function: str
    arguments: list[Any]


class DebugAdapter:
    """A server of the Debug Adapter Protocol, which lets an editor control a `Debugger`.

    Parameters
    ----------
    reader, writer
        The streams from which requests of the editor are read, and to which answers and events are written.
    launch
        A function that builds the program to debug.  Its argument is a mapping with the arguments of the editor's
        request "launch".
    """

    def __init__(self, reader: BinaryIO, writer: BinaryIO, launch: Callable[[Mapping[str, Any]], Launch]) -> None:
        self.reader = reader
        self.writer = writer
        self.launch = launch
        self.program: Launch | None = None
        self.path = ""  # path of the program's source
        self._sent = 0
        self._writes = threading.Lock()
        self._runner: threading.Thread | None = None
        self._stops_at_entry = False
        self._stops_at_errors = True
        self._listings: dict[int, str] = {}  # names of functions by the numbers of their listings
        self._stop: Stop | None = None

    # ---- messages ----

    def serve(self) -> None:
        """Answer the requests of the editor until it disconnects or closes the stream."""
        try:
            while (request := self._read()) is not None:
                self._handle_request(request)
                if request.get("command") in ("disconnect", "terminate"):
                    return
        finally:
            self._close()

    def _read(self) -> dict[str, Any] | None:
        """Return the next message of the editor, or None at the end of the stream."""
        length = None
        while (line := self.reader.readline(1000)).strip():
            name, _, value = line.decode("ascii", "replace").partition(":")
            if name.strip().lower() == "content-length" and value.strip().isdecimal():
                length = int(value)
        if not line:
            return None
        if length is None or length > _MAX_BYTES:
            raise RelvmFormatError(f"expected a Content-Length of at most {_MAX_BYTES} bytes, got {length}")
        try:
            message = json.loads(self.reader.read(length))
        except ValueError as error:
            raise RelvmFormatError(f"expected a message in JSON: {error}") from None
        if not isinstance(message, dict):
            raise RelvmFormatError(f"expected a JSON object, got {type(message).__name__}")
        return message

    def _send(self, kind: str, **fields: Any) -> None:
        with self._writes:
            self._sent += 1
            body = json.dumps({"seq": self._sent, "type": kind, **fields}).encode()
            self.writer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            self.writer.flush()

    def _event(self, name: str, **body: Any) -> None:
        self._send("event", event=name, body=body)

    def _handle_request(self, request: Mapping[str, Any]) -> None:
        """Carry out a request of the editor, and send the response."""
        command = request.get("command")
        response = {"request_seq": request.get("seq", 0), "command": command}
        action = _ACTIONS.get(str(command))
        arguments = request.get("arguments")
        try:
            if action is None:
                raise RelvmArgumentError(f"the request {command!r} is not supported")
            body = action(self, arguments if isinstance(arguments, dict) else {})
        except (RelvmError, OSError) as error:
            self._send("response", **response, success=False, message=str(error))
            return
        except (TypeError, ValueError, AttributeError) as error:  # an argument of the wrong type
            message = f"malformed arguments of {command}: {error}"
            self._send("response", **response, success=False, message=message)
            return
        self._send("response", **response, success=True, body=body or {})
        if command == "launch":
            self._event("initialized")  # the editor now sends its breakpoints
        elif command == "configurationDone":
            self._start_thread(self._begin)
        elif command in _RUNS:
            self._start_thread(_RUNS[str(command)])

    # ---- the run ----

    def _start_thread(self, run_until_stop: Callable[[Debugger], Stop]) -> None:
        """Start or resume the program on another thread, which tells the editor when the program stops or ends.

        run_until_stop: a function that starts or resumes the program, for example for one step, and returns where it
        stops.
        """
        debugger = self._debugger()
        is_entry = run_until_stop == self._begin
        self._stop = None

        def run() -> None:
            try:
                stop = run_until_stop(debugger)
                if stop.reason == "error" and not self._stops_at_errors:
                    stop = debugger.resume()  # raises the error
            except RelvmError as error:
                self._event("output", category="stderr", output=f"{error}\n")
                self._end(1)
                return
            if stop.frame is None:
                self._event("output", category="stdout", output=f"{describe_value(stop.result)}\n")
                self._end(0)
                return
            self._stop = stop
            about = {"description": stop.about, "text": stop.about} if stop.about else {}
            reason = "entry" if is_entry and stop.reason == "step" else _REASONS.get(stop.reason, stop.reason)
            self._event("stopped", reason=reason, threadId=_THREAD, allThreadsStopped=True, **about)

        self._runner = threading.Thread(target=run, name="relvm debug adapter", daemon=True)
        self._runner.start()
        while self._runner.is_alive() and not debugger.is_running:  # so that a following request can pause the run
            self._runner.join(_POLL_SECONDS)

    def _begin(self, debugger: Debugger) -> Stop:
        assert self.program
        if not self._stops_at_entry:
            return debugger.run(self.program.function, *self.program.arguments)
        stop = debugger.start(self.program.function, *self.program.arguments)
        code = debugger.code.find(stop.frame.function) if stop.frame and stop.reason == "step" else None
        if code is not None and stop.frame and code.is_housekeeping(stop.frame.instruction):
            return debugger.step()  # to the first instruction that computes a value
        return stop

    def _end(self, status: int) -> None:
        self._event("exited", exitCode=status)
        self._event("terminated")

    def _close(self) -> None:
        if self.program is None:
            return
        if self._runner is not None and self._runner.is_alive():
            self.program.debugger.interrupt()
            self._runner.join()
        self.program.debugger.close()

    def _debugger(self) -> Debugger:
        if self.program is None:
            raise RelvmArgumentError("there is no program: the request 'launch' is missing or failed")
        return self.program.debugger

    def _paused(self) -> Debugger:
        debugger = self._debugger()
        if self._stop is None:
            raise RelvmArgumentError("the program is running; pause it first")
        return debugger

    # ---- requests ----

    def _initialize(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "supportsConfigurationDoneRequest": True,
            "supportsFunctionBreakpoints": True,
            "supportsEvaluateForHovers": True,
            "supportsTerminateRequest": True,
            "exceptionBreakpointFilters": [{"filter": "nan", "label": "A value becomes NaN", "default": False}],
        }

    def _launch(self, arguments: Mapping[str, Any]) -> None:
        if self.program is not None:
            raise RelvmArgumentError("a program is running already; start another adapter for a second one")
        self.path = str(arguments.get("program", ""))
        self._stops_at_errors = not arguments.get("noDebug", False)
        self._stops_at_entry = bool(arguments.get("stopOnEntry", False)) and self._stops_at_errors
        self.program = self.launch(arguments)

    def _set_breakpoints(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        path = str(arguments.get("source", {}).get("path", ""))
        if not path or Path(path).resolve() != Path(self.path).resolve():
            message = f"the program is {self.path}, and has no code from {path or 'this source'}"
            return {"breakpoints": [{"verified": False, "message": message} for _ in arguments.get("breakpoints", [])]}
        lines = [each.get("line") for each in arguments.get("breakpoints", [])]
        return {"breakpoints": self._replace_breakpoints(lines, is_line=True)}

    def _set_function_breakpoints(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        names = [each.get("name") for each in arguments.get("breakpoints", [])]
        return {"breakpoints": self._replace_breakpoints(names, is_line=False)}

    def _replace_breakpoints(self, locations: list[Any], *, is_line: bool) -> list[dict[str, Any]]:
        """Replace all breakpoints at lines, or all at functions, by breakpoints at `locations`.

        Return descriptions of the new breakpoints for the editor.

        is_line: whether `locations` are line numbers, instead of names of functions.
        """
        debugger = self._debugger()
        for breakpoint_ in list(debugger.breakpoints):
            if breakpoint_.where.isdecimal() == is_line:
                debugger.delete(breakpoint_)
        shown: list[dict[str, Any]] = []
        for place in locations:
            try:
                breakpoint_ = debugger.break_at(place)
            except RelvmError as error:
                shown.append({"verified": False, "message": str(error)})
            else:
                shown.append({"verified": True, "id": breakpoint_.number} | ({"line": place} if is_line else {}))
        return shown

    def _set_exception_breakpoints(self, arguments: Mapping[str, Any]) -> None:
        self._debugger().watch_nan("nan" in arguments.get("filters", []))

    def _threads(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        return {"threads": [{"id": _THREAD, "name": "machine"}]}

    def _stack_trace(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        first = int(arguments.get("startFrame") or 0)
        count = int(arguments.get("levels") or 100)
        frames = self._paused().stack(first + count)[first:]
        depth = self._stop.depth if self._stop else 0
        return {"stackFrames": [self._frame(first + i, frame) for i, frame in enumerate(frames)], "totalFrames": depth}

    def _frame(self, number: int, frame: Frame) -> dict[str, Any]:
        """Return `frame` as a StackFrame of the protocol, with the id `number`.

        Its location is a line of the source or, if the source is not available, of the bytecode listing of its
        function.
        """
        shown = {"id": number, "name": f"{frame.function}:{frame.instruction}"}
        for origin in frame.origins:
            path, line, column = [*origin.rsplit(":", 2), "", ""][:3]
            if line.isdecimal() and column.isdecimal() and Path(path).is_file():
                source = {"name": Path(path).name, "path": str(Path(path).resolve())}
                return shown | {"source": source, "line": int(line), "column": int(column)}
        known = {name: reference for reference, name in self._listings.items()}
        reference = known.get(frame.function, len(self._listings) + 1)
        self._listings[reference] = frame.function
        listing = {"name": f"{frame.function} (bytecode)", "sourceReference": reference}
        return shown | {"source": listing, "line": frame.instruction + 1, "column": 1}

    def _source(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reference = arguments.get("sourceReference") or arguments.get("source", {}).get("sourceReference")
        if reference not in self._listings:
            raise RelvmArgumentError(f"there is no source {reference}")
        text = self._debugger().listing(self._listings[reference], 0, _WHOLE)
        return {"content": "\n".join(line.removeprefix("->").strip() for line in text.splitlines())}

    def _scopes(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        reference = _FRAME_REFERENCES + int(arguments.get("frameId") or 0)
        return {"scopes": [{"name": "Values", "variablesReference": reference, "expensive": False}]}

    def _variables(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        frame = int(arguments.get("variablesReference") or 0) - _FRAME_REFERENCES
        rows = [row for row in self._paused().registers(frame) if not is_unwritten(row.name)]
        return {"variables": [{"name": r.name or r.label, "value": r.shown, "variablesReference": 0} for r in rows]}

    def _evaluate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        value = self._paused().value(str(arguments.get("expression", "")), int(arguments.get("frameId") or 0))
        text = describe_value(value) if arguments.get("context") == "hover" else str(value)
        return {"result": text, "variablesReference": 0}

    def _move(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        self._paused()
        return {"allThreadsContinued": True}

    def _pause(self, arguments: Mapping[str, Any]) -> None:
        self._debugger().interrupt()

    def _expect_program(self, arguments: Mapping[str, Any]) -> None:
        self._debugger()

    def _ignore_request(self, arguments: Mapping[str, Any]) -> None:
        """Do nothing, because `serve` and `_handle_request` act on "disconnect" and "terminate" themselves."""


_RUNS: dict[str, Callable[[Debugger], Stop]] = {
    "continue": Debugger.resume,
    "next": Debugger.step_over,
    "stepIn": Debugger.step,
    "stepOut": Debugger.step_out,
}
_ACTIONS: dict[str, Callable[[DebugAdapter, Mapping[str, Any]], dict[str, Any] | None]] = {
    "initialize": DebugAdapter._initialize,
    "launch": DebugAdapter._launch,
    "setBreakpoints": DebugAdapter._set_breakpoints,
    "setFunctionBreakpoints": DebugAdapter._set_function_breakpoints,
    "setExceptionBreakpoints": DebugAdapter._set_exception_breakpoints,
    "configurationDone": DebugAdapter._expect_program,
    "threads": DebugAdapter._threads,
    "stackTrace": DebugAdapter._stack_trace,
    "source": DebugAdapter._source,
    "scopes": DebugAdapter._scopes,
    "variables": DebugAdapter._variables,
    "evaluate": DebugAdapter._evaluate,
    "pause": DebugAdapter._pause,
    "disconnect": DebugAdapter._ignore_request,
    "terminate": DebugAdapter._ignore_request,
    **dict.fromkeys(_RUNS, DebugAdapter._move),
}
