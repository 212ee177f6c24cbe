"""Liveness of the registers of a routine, as charts and text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import TYPE_CHECKING

from relvm.compiler.build import lower
from relvm.data_classes import dataclass
from relvm.display import Displayed
from relvm.explore.draw.matplotlib_import import new_figure
from relvm.explore.selection import choose_function, run_to_stage
from relvm.ir.expr import Module
from relvm.ir.verifier import Stage
from relvm.lir.routine import (
    CallStatement,
    IfStatement,
    PrimStatement,
    Register,
    ResetStatement,
    Routine,
    Statement,
    TailCallStatement,
    operands_of,
    statements_in,
    written_registers,
)
from relvm.quoting import svg_text, terminal

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, repr=False)
class RegisterLife(Displayed):
    """The lifetime of a register of a routine.

    The attributes state numbers of statements: their positions, from 1, in the printed routine.  An `if` has a number,
    and the statements in its branches have the numbers after it.  The `else` has no number.

    Attributes
    ----------
    index
        Index of the register.
    name
        Name of the parameter, or of the first value that is written to the register.  Empty if this value is the result
        of a branch of an `if`.  The register of the routine's result has the name "result".
    held
        The numbers of the statements at which the register holds a value, whether or not the value is read later.  The
        register holds the value directly before or directly after the statement, on at least one path through the
        routine.
    needed
        The numbers of the statements at which the value is live: from the statement that writes the value to the last
        statement that reads the value.  A parameter is live from the first statement.
    """

    index: int
    name: str
    held: tuple[int, ...]
    needed: tuple[int, ...]

    def __str__(self) -> str:
        return terminal(f"r[{self.index}]  {self.name}  needed {_listed(self.needed)}  held {_listed(self.held)}")


def liveness(
    module: Module, function: str | None = None, *, target: str = "c", fused: bool = True
) -> tuple[RegisterLife, ...]:
    """Return the lifetimes of the registers in the routine of a function.

    The routine is the form of the function before code generation.

    Parameters
    ----------
    module
        A module as a front end, such as `parse_module`, returns it.
    function
        Name of the function, by default the first public one.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        The target is unknown.
    """
    return _lives(_routine(module, function, target, fused))


def draw_liveness(module: Module, function: str | None = None, *, target: str = "c", fused: bool = True) -> Figure:
    """Draw `liveness` as a chart of registers against statements.

    Statements are in the order in which `relvm show --stage routine` prints them.  Each register has a bar.  The bar is
    dark from a statement that writes a value to the last statement that reads this value.  The bar is light where the
    register holds a value that no later statement reads.  A second chart below counts the registers at each statement:
    those that hold a value, and those whose value is still needed.

    Parameters
    ----------
    module
        The module from a front end.
    function
        Name of the function, by default the first public one.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, for `savefig` or for display in Jupyter.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        The target is unknown.
    RelvmUnsupportedError
        matplotlib is not installed.
    """
    routine = _routine(module, function, target, fused)
    lives = _lives(routine)
    count = sum(1 for _ in statements_in(routine.body))
    rows = 0.16 * len(lives) + 0.5
    figure = new_figure(10, rows + 2)
    above, below = figure.subplots(2, sharex=True, height_ratios=(rows, 1.5))
    for row, life in enumerate(lives):
        for numbers, color, what in ((life.held, "#c6dbef", "held"), (life.needed, "#2171b5", "needed")):
            spans = [(first - 0.5, last - first + 1) for first, last in _consecutive_ranges(numbers)]
            above.broken_barh(spans, (row - 0.4, 0.8), facecolor=color).set_gid(f"r[{life.index}] {what}")
    above.set(title=svg_text(f"{routine.name}: registers"), ylim=(len(lives) - 0.5, -0.5))
    above.set_yticks(range(len(lives)), [svg_text(f"{life.name} r[{life.index}]") for life in lives], fontsize=7)
    points = range(1, count + 1)
    for what, color in (("held", "#6baed6"), ("needed", "#08519c")):
        below.step(points, _counts_by_statement(lives, what, count), where="mid", color=color, label=what)
    below.set(xlabel="statement", ylabel="registers", xlim=(0.5, count + 0.5), ylim=(0, None))
    below.xaxis.get_major_locator().set_params(integer=True)
    below.legend(loc="upper right", fontsize=8)
    return figure


def format_liveness(module: Module, function: str | None = None, *, target: str = "c", fused: bool = True) -> str:
    """Return `liveness` as text: for each register, the statements at which its value is needed, and those at which the
    register holds a value (see `RegisterLife`).

    Parameters
    ----------
    module
        The module from a front end.
    function
        Name of the function, by default the first public one.
    target
        The form of kernels: "c", "bytecode" or "numpy".
    fused
        Whether operators are fused into common kernels.

    Raises
    ------
    RelvmNameError
        The function does not exist.
    RelvmArgumentError
        The target is unknown.
    """
    routine = _routine(module, function, target, fused)
    lives = _lives(routine)
    count = sum(1 for _ in statements_in(routine.body))
    most = {what: max(_counts_by_statement(lives, what, count), default=0) for what in ("held", "needed")}
    head = f"{terminal(routine.name)}: {count} statements, {len(lives)} registers"
    lines = [f"{head}; at once {most['held']} hold a value, {most['needed']} are needed\n"]
    cells = [(f"r[{life.index}]", terminal(life.name), _listed(life.needed), _listed(life.held)) for life in lives]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for place, name, needed, held in cells:
        start = f"  {place.ljust(widths[0])}  {name.ljust(widths[1])}"
        lines.append(f"{start}  needed {needed.ljust(widths[2])}  held {held}\n")
    return "".join(lines)


def _routine(module: Module, function: str | None, target: str, fused: bool) -> Routine:
    built = run_to_stage(module, Stage.PLANNED, target, fused=fused)
    name = choose_function(built, function)
    return next(routine for routine in lower(built).routines if routine.name == name)


def _lives(routine: Routine) -> tuple[RegisterLife, ...]:
    numbered = enumerate(statements_in(routine.body), 1)
    found = _LivenessAnalysis({id(statement): number for number, statement in numbered})
    found.live_before(routine.body, frozenset((len(routine.params),)))
    found.occupied_after(routine.body, frozenset(range(len(routine.params))))
    names = dict(enumerate((*routine.params, "result")))
    for statement in statements_in(routine.body):
        if isinstance(statement, CallStatement | PrimStatement) and statement.destination is not None:
            names.setdefault(statement.destination, statement.comment)
    return tuple(
        RegisterLife(index, names[index], tuple(found.held[index]), tuple(sorted(found.needed.get(index, ()))))
        for index in sorted(found.held)
    )


@dataclass
class _LivenessAnalysis:
    """Liveness analysis of the registers of a routine.  The methods add their results to `needed` and `held`.

    numbers: the number of each statement, by its id().  The statement itself cannot be the key, because equal
    statements can occur twice.
    needed: the numbers of the statements at which a register is live, by register.
    held: the numbers of the statements at which a register contains a value, live or not, by register.
    """

    numbers: dict[int, int]
    needed: dict[int, list[int]] = field(default_factory=dict)
    held: dict[int, list[int]] = field(default_factory=dict)

    def live_before(self, body: tuple[Statement, ...], after: frozenset[int]) -> frozenset[int]:
        """Analyze the statements `body` backwards.  Return the registers that are live before them.

        after: the registers that are live after them.
        """
        for statement in reversed(body):
            made = written_registers(statement)
            read = frozenset(each.index for each in operands_of(statement) if isinstance(each, Register))
            match statement:
                case IfStatement(_, then, orelse):
                    before = self.live_before(then, after) | self.live_before(orelse, after) | read
                case TailCallStatement():
                    before = read
                case _:
                    before = (after - made) | read
            for register in before | (made & after):
                self.needed.setdefault(register, []).append(self.numbers[id(statement)])
            after = before
        return after

    def occupied_after(self, body: tuple[Statement, ...], before: frozenset[int]) -> frozenset[int]:
        """Analyze the statements `body` in order.  Return the registers that contain a value after them.

        before: the registers that contain a value before them.
        """
        for statement in body:
            made = written_registers(statement)
            for register in before | made:
                self.held.setdefault(register, []).append(self.numbers[id(statement)])
            match statement:
                case IfStatement(_, then, orelse):
                    before = self.occupied_after(then, before) | self.occupied_after(orelse, before)
                case TailCallStatement():
                    before = frozenset()
                case ResetStatement(register):
                    before -= {register}
                case _:
                    before |= made
        return before


def _counts_by_statement(lives: Iterable[RegisterLife], what: str, statements: int) -> list[int]:
    """Return, for each statement, the number of registers that are held or needed there.

    what: the attribute of RegisterLife to count: "held" or "needed".   statements: the number of statements.
    """
    counts = [0] * statements
    for life in lives:
        for number in getattr(life, what):
            counts[number - 1] += 1
    return counts


def _consecutive_ranges(numbers: tuple[int, ...]) -> list[tuple[int, int]]:
    """Divide numbers, in increasing order, into ranges of consecutive numbers.

    Return the first and the last number of each range: 1, 2, 3, 5 has the result [(1, 3), (5, 5)].
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = runs[-1][0], number
        else:
            runs.append((number, number))
    return runs


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in _consecutive_ranges(numbers)) or "never"
