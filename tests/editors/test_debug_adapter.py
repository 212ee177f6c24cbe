"""Tests of the debug adapter with a client that communicates with `relvm dap` like an editor."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relvm.editors.debug_adapter import DebugAdapter, Launch
from relvm.errors import RelvmFormatError
from relvm.explore import Debugger
from relvm.explore.debugger.frames import Stop

PROGRAM = """\
def main(x: f32[n]) -> f32[n] {
  y = @twice(x)
  z = @twice(y)
  return z
}
def twice(a: f32[m]) -> f32[m] {
  b = add(a, a)
  return b
}
def forever(i: i64) -> i64 = @forever(i + 1)
"""


class Editor:
    """A client of the adapter."""

    def __init__(self, folder: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "relvm", "dap"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
        )
        self.sent = 0
        self.events: list[dict[str, Any]] = []

    def request(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        """Send a request, and return the response.  Events that come before it are kept."""
        self.sent += 1
        body = json.dumps({"seq": self.sent, "type": "request", "command": command, "arguments": arguments}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()
        while (message := self._read())["type"] == "event":
            self.events.append(message)
        assert message["request_seq"] == self.sent and message["command"] == command
        return message

    def ask(self, command: str, /, **arguments: Any) -> dict[str, Any]:
        """Send a request that must succeed, and return the body of the response."""
        response = self.request(command, **arguments)
        assert response["success"], response
        return response["body"]

    def wait_for(self, event: str) -> dict[str, Any]:
        """Return the body of the next event of this name."""
        while True:
            message = self.events.pop(0) if self.events else self._read()
            if message["type"] == "event" and message["event"] == event:
                return message["body"]

    def start(self, program: Path, **arguments: Any) -> None:
        self.ask("initialize", adapterID="relvm")
        self.ask("launch", program=str(program), **arguments)
        self.wait_for("initialized")

    def lines(self) -> list[tuple[str, int]]:
        """Return the function and the line of each frame."""
        frames = self.ask("stackTrace", threadId=1)["stackFrames"]
        return [(frame["name"].partition(":")[0], frame["line"]) for frame in frames]

    def _read(self) -> dict[str, Any]:
        header = self.process.stdout.readline()
        assert header.startswith(b"Content-Length: "), header
        assert self.process.stdout.readline() == b"\r\n"
        return json.loads(self.process.stdout.read(int(header.split(b":")[1])))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "model.relvm").write_text(PROGRAM)
    return tmp_path / "model.relvm"


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    made = Editor(tmp_path)
    yield made
    made.process.stdin.close()
    assert made.process.wait(30) == 0
    made.process.stdout.close()


OPTIONS = {"target": "bytecode", "dims": {"n": 3}, "random": True}


def test_an_editor_steps_through_a_program(editor: Editor, program: Path) -> None:
    editor.start(program, **OPTIONS)
    found = editor.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 7}, {"line": 99}])
    good, bad = found["breakpoints"]
    assert good["verified"] and good["line"] == 7
    assert not bad["verified"] and "no such" in bad["message"]
    editor.ask("setExceptionBreakpoints", filters=["nan"])
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    assert editor.ask("threads")["threads"] == [{"id": 1, "name": "machine"}]
    assert editor.lines() == [("twice", 7), ("main", 2)]

    (scope,) = editor.ask("scopes", frameId=0)["scopes"]
    values = {each["name"]: each["value"] for each in editor.ask("variables", **scope)["variables"]}
    assert values["a"].startswith("f32[3]")
    assert editor.ask("evaluate", expression="a", frameId=0, context="hover")["result"] == values["a"]
    refused = editor.request("evaluate", expression="nothing", frameId=0)
    assert not refused["success"] and "nothing" in refused["message"]

    editor.ask("stepOut", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "step"
    assert [function for function, _ in editor.lines()] == ["main"]
    editor.ask("continue", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    assert editor.lines() == [("twice", 7)]  # a tail call: main is no longer on the stack
    editor.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[])
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited") == {"exitCode": 0}
    editor.wait_for("terminated")
    editor.ask("disconnect")


def test_stop_on_entry_function_breakpoints_and_steps(editor: Editor, program: Path) -> None:
    editor.start(program, stopOnEntry=True, **OPTIONS)
    (found,) = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "twice"}])["breakpoints"]
    assert found["verified"]
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    assert [function for function, _ in editor.lines()] == ["main"]
    editor.ask("continue", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    assert editor.lines()[0][0] == "twice"
    editor.ask("next", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "step"
    editor.ask("stepIn", threadId=1)
    editor.wait_for("stopped")
    editor.ask("disconnect")


LINES = """\
def main(x: f32[n]) -> f32[n] {
  a = exp(x)
  b = add(a, x)
  c = softmax(b)
  return c
}
"""


def test_steps_stop_at_the_lines_of_the_program_until_it_returns(editor: Editor, program: Path) -> None:
    program.write_text(LINES)
    editor.start(program, stopOnEntry=True, **OPTIONS)
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "entry"
    lines, shown = [], []
    for _ in range(4):
        lines += editor.lines()
        (scope,) = editor.ask("scopes", frameId=0)["scopes"]
        shown.append({each["name"] for each in editor.ask("variables", **scope)["variables"]})
        editor.ask("next", threadId=1)
        assert lines[-1] == ("main", 5) or editor.wait_for("stopped")["reason"] == "step"
    assert lines == [("main", 2), ("main", 3), ("main", 4), ("main", 5)]
    assert [names & {"a", "b", "c"} for names in shown] == [set(), {"a"}, {"b"}, {"c"}]
    assert not any("room for" in name for names in shown for name in names)
    assert editor.wait_for("exited") == {"exitCode": 0}


@pytest.mark.parametrize(("arguments", "stops"), [({}, 2), ({"unfused": False}, 1)])
def test_operators_have_kernels_of_their_own_unless_fused(
    editor: Editor, program: Path, arguments: dict[str, bool], stops: int
) -> None:
    program.write_text(LINES)
    editor.start(program, **OPTIONS, **arguments)
    editor.ask("setBreakpoints", source={"path": str(program)}, breakpoints=[{"line": 3}, {"line": 4}])
    editor.ask("configurationDone")
    for _ in range(stops):
        assert editor.wait_for("stopped")["reason"] == "breakpoint"
        editor.ask("continue", threadId=1)
    assert editor.wait_for("exited") == {"exitCode": 0}


@pytest.mark.parametrize(("divisor", "status"), [(1, 0), (0, 1)])
def test_a_run_without_debugging_does_not_stop(editor: Editor, program: Path, divisor: int, status: int) -> None:
    program.write_text("def main(i: i64) -> i64 = 1 // i\n")
    editor.start(program, stopOnEntry=True, noDebug=True, target="bytecode", inputs={"i": divisor})
    editor.ask("configurationDone")
    assert editor.wait_for("exited") == {"exitCode": status}


def test_a_frame_without_a_source_shows_its_bytecode(editor: Editor, program: Path) -> None:
    from relvm import vm
    from relvm.frontend.text import parse_module

    vm.build(parse_module(PROGRAM), target="bytecode").save(program.with_suffix(".rvm"))
    editor.start(program.with_suffix(".rvm"), stopOnEntry=True, dims={"n": 3}, random=True)
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    (frame,) = editor.ask("stackTrace", threadId=1)["stackFrames"]
    content = editor.ask("source", **frame["source"])["content"].splitlines()
    number = frame["name"].partition(":")[2]
    assert content[frame["line"] - 1].startswith(f"{number}: ")
    assert not editor.request("source", sourceReference=99)["success"]
    editor.ask("disconnect")


def test_a_run_without_end_is_paused_and_ended(editor: Editor, program: Path) -> None:
    editor.start(program, function="forever", inputs={"i": 0}, target="bytecode")
    editor.ask("configurationDone")
    refused = editor.request("stackTrace", threadId=1)
    assert not refused["success"] and "pause it first" in refused["message"]
    editor.ask("pause", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "pause"
    assert editor.lines()[0][0] == "forever"
    for _ in range(10):  # no pause is lost, even one that arrives before the run continues
        editor.ask("continue", threadId=1)
        editor.ask("pause", threadId=1)
        assert editor.wait_for("stopped")["reason"] == "pause"
    editor.ask("continue", threadId=1)
    editor.ask("disconnect")  # disconnect while the program runs


def test_a_request_that_arrives_before_the_run_begins_waits_for_it(program: Path) -> None:
    class SlowDebugger(Debugger):
        def run(self, *arguments: Any) -> Stop:
            time.sleep(0.2)
            return super().run(*arguments)

    requests = b""
    for command in ("launch", "configurationDone", "disconnect"):
        body = json.dumps({"seq": 1, "type": "request", "command": command}).encode()
        requests += b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    debugger = SlowDebugger(program, target="bytecode")
    DebugAdapter(io.BytesIO(requests), io.BytesIO(), lambda _: Launch(debugger, "forever", [0])).serve()
    assert not debugger.is_running


def test_errors_of_the_program_and_wrong_requests(editor: Editor, program: Path, tmp_path: Path) -> None:
    editor.ask("initialize")
    for arguments, message in (
        ({}, "the path of a model"),
        ({"program": str(tmp_path / "missing.relvm")}, "missing.relvm"),
        ({"program": str(program), "function": "nix"}, "nix"),
        ({"program": str(program), "dims": [1]}, "dims: expected an object"),
        ({"program": str(program), "execMode": "fast"}, "wrong arguments"),
        ({"program": str(program), "unfused": "no"}, "unfused: expected true or false"),
    ):
        response = editor.request("launch", **arguments)
        assert not response["success"] and message in response["message"], response
    assert not editor.request("continue", threadId=1)["success"]
    assert "is missing or failed" in editor.request("configurationDone")["message"]
    assert "is not supported" in editor.request("goto")["message"]
    (tmp_path / "wrong.relvm").write_text("def main(i: i64) -> i64 = 1 // i\n")
    editor.ask("launch", program=str(tmp_path / "wrong.relvm"), inputs={"i": 0}, target="bytecode")
    assert not editor.request("launch", program=str(program))["success"]
    (other,) = editor.ask("setBreakpoints", source={"path": "/other.relvm"}, breakpoints=[{"line": 1}])["breakpoints"]
    assert not other["verified"]
    for command, arguments in (
        ("setFunctionBreakpoints", {"breakpoints": 3}),
        ("setBreakpoints", {"source": 3}),
        ("scopes", {"frameId": "x"}),
        ("variables", {"variablesReference": "x"}),
    ):
        response = editor.request(command, **arguments)
        assert not response["success"] and f"malformed arguments of {command}" in response["message"]
    editor.ask("configurationDone")
    stopped = editor.wait_for("stopped")
    assert stopped["reason"] == "exception" and "zero" in stopped["text"]
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited") == {"exitCode": 1}


@pytest.mark.parametrize(
    "data", [b"Content-Length: x\r\n\r\n", b"Content-Length: 999999999\r\n\r\n", b"A: 1\r\n\r\n",
             b"Content-Length: 3\r\n\r\n[1]", b"Content-Length: 3\r\n\r\n{{{"]
)  # fmt: skip
def test_malformed_messages_end_the_adapter(data: bytes) -> None:
    with pytest.raises(RelvmFormatError, match="expected a"):
        DebugAdapter(io.BytesIO(data), io.BytesIO(), lambda arguments: pytest.fail("launched")).serve()
