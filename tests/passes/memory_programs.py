"""Random programs, as text, that keep many tensors of different sizes alive: chains, branches, tuples, views, calls."""

from __future__ import annotations

import random

HELPER = "def helper(v: f32[k, l]) -> f32[k, l] = relu(softmax(v, axis=1))\n"

Value = tuple[str, tuple[str, str]]  # the name of a matrix, and its two dimensions


class Writer:
    """Generates the text of a random function `main(c, x, y)`.  x has the shape (n, m), and y has the shape (4, m)."""

    def __init__(self, seed: int, bindings: int) -> None:
        self.random = random.Random(seed)
        self.count = 0
        start = [("x", ("n", "m")), ("y", ("4", "m"))]
        lines, values = self.lines(start, bindings, depth=1)
        result = ", ".join(name for name, _ in self.random.sample(values[-5:], 2))
        body = "\n".join(lines)
        self.text = (
            f"{HELPER}def main(c: bool, x: f32[n, m], y: f32[4, m]) => object {{\n{body}\n  return ({result})\n}}\n"
        )

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def lines(self, values: list[Value], bindings: int, depth: int) -> tuple[list[str], list[Value]]:
        values, lines = list(values), []
        for _ in range(bindings):
            if self.random.random() < 0.1:
                more, value = self.tuple_lines(values, depth)
                lines += more
                values.append(value)
                continue
            text, shape = self.value(values, depth)
            name = self.name()
            lines.append("  " * depth + f"{name} = {text}")
            values.append((name, shape))
        return lines, values

    def tuple_lines(self, values: list[Value], depth: int) -> tuple[list[str], Value]:
        """Return lines that bind a tuple and extract an item, and the item.

        The tuple may be the result of an `if`.  There may be a call between the two bindings.
        """
        (name, shape), (other, _) = self.random.choice(values[-3:]), self.random.choice(values)
        pair, item = self.name(), self.name()
        made = f"(({name}, 1), {other})"
        if self.random.random() < 0.5:
            third = self.random.choice([v for v, of in values if of == shape])
            made = f"if c then {made} else (({third}, 1), {other})"
        kept = "  " * depth + f'{self.name()} = packed("memory.note", {other}) : ()'
        lines = [f"{pair} = {made}", f"{item} = {pair}.0.0"]
        lines = ["  " * depth + line for line in lines]
        return ([*lines[:1], kept, *lines[1:]] if self.random.random() < 0.3 else lines), (item, shape)

    def value(self, values: list[Value], depth: int) -> tuple[str, tuple[str, str]]:
        name, (a, b) = self.random.choice(values[-3:] if self.random.random() < 0.85 else values)
        other = self.random.choice([v for v, shape in values if shape == (a, b)])
        kinds = ["point", "point", "point", "two", "two", "soft", "soft", "transpose", "view", "again", "row", "item"]
        kinds += ["packed", "helper"] if self.random.random() < 0.3 else []
        kinds += ["if"] if depth < 3 else []
        match self.random.choice(kinds):
            case "point":
                return f"{self.random.choice(('relu', 'negative', 'abs'))}({name})", (a, b)
            case "two":
                return f"{self.random.choice(('add', 'maximum'))}({name}, {other})", (a, b)
            case "soft":
                return f"softmax({name}, axis=1)", (a, b)
            case "transpose":
                return f"transpose({name}, perm=(1, 0))", (b, a)
            case "view":
                return f"reshape({name}, shape({b}, {a}))", (b, a)
            case "again":
                return name, (a, b)
            case "row":
                return f"add({name}, max({name}, axes=(1,), keepdims=true))", (a, b)
            case "item":
                return f"({other}, ({name}, 1), {name}).{self.random.choice(('0', '1.0', '2'))}", (a, b)
            case "packed":
                return f'packed("memory.same", {name}) : f32[{a}, {b}]', (a, b)
            case "helper":
                return f"@helper({name})", (a, b)
        branches = []
        for _ in range(2):
            lines, inner = self.lines(values, self.random.randint(0, 4), depth + 1)
            result = self.random.choice([v for v, shape in inner if shape == (a, b)][-3:])
            branches.append("{\n" + "\n".join(lines) + "\n" + "  " * depth + f"  return {result} }}")
        return f"if c then {branches[0]} else {branches[1]}", (a, b)


def program(seed: int, bindings: int = 80) -> str:
    """Return the text of a random module with the function main.  bindings: the number of its bindings."""
    return Writer(seed, bindings).text
