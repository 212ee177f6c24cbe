"""Random functions, as text, on lists of integers, lists of such lists, and nullable integers."""

from __future__ import annotations

from random import Random

PARAMETERS = "n: i64, xs: list[i64], ll: list[list[i64]], o: optional[i64]"


class Writer:
    """Generates the bindings of one block.  names: the names in scope, by type."""

    def __init__(self, random: Random, names: dict[str, list[str]], indent: str) -> None:
        self.random = random
        self.names = {type_: list(known) for type_, known in names.items()}
        self.indent = indent
        self.lines: list[str] = []

    def pick(self, type_: str) -> str:
        return self.random.choice(self.names[type_])

    def bind(self, type_: str, value: str) -> None:
        name = f"v{len(self.indent)}_{len(self.lines)}"
        self.lines.append(f"{self.indent}{name}: {type_} = {value}")
        self.names[type_].append(name)

    def index(self) -> str:
        return self.random.choice([self.pick("i64"), *map(str, (0, -1, 1, -2, 2))])

    def statement(self, depth: int) -> None:
        inner = {"list[i64]": "i64", "list[list[i64]]": "list[i64]"}
        kind = self.random.choice(list(inner))
        x, item = self.pick(kind), self.pick(inner[kind])
        forms = ["append"] * 4 + ["insert", "erase", "item", "length", "make", "optional", "value", "null"]
        match self.random.choice(forms + ["if", "loop"] * (depth > 0)):
            case "append":
                self.bind(kind, f"list_append({x}, {item})")
            case "insert":
                self.bind(kind, f"list_insert({x}, {self.index()}, {item})")
            case "erase":
                self.bind(kind, f"list_erase({x}, {self.index()})")
            case "item":
                self.bind(inner[kind], f"list_item({x}, {self.index()})")
            case "length":
                self.bind("i64", f"list_length({x})")
            case "make":
                self.bind(kind, f"make_list({', '.join(self.pick(inner[kind]) for _ in range(3))})")
            case "optional":
                self.bind("optional[i64]", f"if {self.pick('i64')} % 2 == 0 then {self.pick('i64')} else null")
            case "value":
                o, way = self.pick("optional[i64]"), self.random.choice(("null", "guarded"))
                cast = f"{{ w = match_cast({o}, i64); return w }}"
                self.bind("i64", f"if is_null({o}) then -7 else {cast}" if way == "guarded" else cast)
            case "null":
                self.bind("i64", f"prim.i64(is_null({self.pick('optional[i64]')}))")
            case "if":
                blocks = [self.block(kind, depth - 1) for _ in range(2)]
                self.bind(kind, f"if {self.pick('i64')} > {self.pick('i64')} then {blocks[0]} else {blocks[1]}")
            case "loop":
                self.loop(kind, inner[kind], depth)

    def block(self, type_: str, depth: int, extra: dict[str, str] | None = None) -> str:
        names = {t: [*known, *([extra[t]] if extra and t in extra else [])] for t, known in self.names.items()}
        writer = Writer(self.random, names, self.indent + "  ")
        for _ in range(self.random.randint(1, 3)):
            writer.statement(depth)
        return "{\n" + "\n".join([*writer.lines, f"{writer.indent}return {writer.pick(type_)}\n{self.indent}}}"])

    def loop(self, kind: str, item: str, depth: int) -> None:
        """Add a loop of three iterations, each of which appends an item to a list."""
        place = f"{len(self.indent)}_{len(self.lines)}"
        name, i, c = (f"{stem}{place}" for stem in ("loop", "i", "c"))
        body = self.block(item, depth - 1, {kind: c, "i64": i})
        result = f"if {i} >= 3 then {c} else {name}({i} + 1, list_append({c}, {body}))"
        self.lines.append(f"{self.indent}{name} = fn ({i}: i64, {c}: {kind}) -> {kind} = {result}")
        self.bind(kind, f"{name}(0, {self.pick(kind)})")


def function(seed: int) -> str:
    """Return the text of a function `f<seed>` with PARAMETERS.  Its result is a selection of the computed values."""
    random = Random(seed)
    names = {"i64": ["n"], "list[i64]": ["xs"], "list[list[i64]]": ["ll"], "optional[i64]": ["o"]}
    writer = Writer(random, names, "  ")
    for _ in range(random.randint(2, 9)):
        writer.statement(2)
    results = ", ".join(random.choice(known[-3:]) for known in writer.names.values())
    body = "\n".join([*writer.lines, f"  return ({results})"])
    return f"def f{seed}({PARAMETERS}) -> (i64, list[i64], list[list[i64]], optional[i64]) {{\n{body}\n}}\n"
