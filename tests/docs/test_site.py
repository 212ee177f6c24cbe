"""The site built from docs/ has no warnings, and shows all tables, operators, commands and public names."""

from __future__ import annotations

import base64
import dataclasses
import enum
import html
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import declarations
import pytest
import python_api
import search_terms
from support.documents import ROOT

from relvm import tables
from relvm.cli.help import COMMANDS
from relvm.cli.main import make_parser
from relvm.ir.operator import operators


def build(source: Path, target: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-P", "-m", "sphinx", "-q", "-W", "--keep-going", source, target]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "docs", folder)
    assert done.returncode == 0, done.stderr
    return folder


def text_of(page: Path) -> str:
    """Return the visible text of a page, with each run of white space as one space."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", "", page.read_text())).split())


def test_every_document_is_a_page(site: Path) -> None:
    for document in (ROOT / "docs").rglob("*.md"):
        assert (site / document.relative_to(ROOT / "docs").with_suffix(".html")).exists(), document


def test_the_site_needs_no_network(site: Path) -> None:
    loads = re.compile(r"""<(?:script|img|iframe)\b[^>]*\bsrc="([^"]*)"|<link\b[^>]*\bhref="([^"]*)\"""")
    for page in site.rglob("*.html"):
        found = ["".join(match) for match in loads.findall(page.read_text())]
        is_alone = page.parent.name == "_pages"  # a self-contained page
        assert (found or is_alone) and not [place for place in found if re.match(r"(?:\w+:)?//", place)], page
    for style in site.rglob("*.css"):
        assert not re.search(r"""(?:url\(|@import)\s*["']?(?:https?:)?//""", style.read_text()), style


def test_every_anchor_is_there(site: Path) -> None:
    for page in site.rglob("*.html"):
        for place, anchor in re.findall(r'href="([^"#:]*)#([^"]+)"', page.read_text()):
            target = (page.parent / place) if place else page
            named = html.unescape(anchor)
            assert f'id="{named}"' in html.unescape(target.read_text()), f"{page.name}: {place}#{anchor}"


def test_every_notebook_is_a_page_with_its_outputs(site: Path) -> None:
    for notebook in (ROOT / "notebooks").glob("*.ipynb"):
        text = text_of(site / f"notebooks/{notebook.stem}.html")
        for cell in json.loads(notebook.read_text())["cells"]:
            code = cell["source"] if cell["cell_type"] == "code" else []
            shown = [*code, "\n", *(line for output in cell.get("outputs", []) for line in output.get("text", []))]
            assert " ".join("".join(shown).split()) in text, (notebook, cell["id"])
        assert "Exercise." in text and "Solution" in text


def test_pictures_are_made(site: Path) -> None:
    directive = re.compile(r"^```\{relvm-(?:picture|diagram)\} (.*)$", re.MULTILINE)
    for page in (ROOT / "docs").rglob("*.md"):
        built = (site / page.relative_to(ROOT / "docs")).with_suffix(".html").read_text()
        figures = re.findall(r'<figure class="relvm-(?:picture|html)">(.*?)</figure>', built, flags=re.DOTALL)
        for caption in directive.findall(page.read_text()):
            (figure,) = (each for each in figures if f"<figcaption>{html.escape(caption)}</figcaption>" in each)
            images = re.findall(r'<img alt="[^"]+" width="\d+" src="data:image/svg\+xml;base64,([^"]+)">', figure)
            pictures = [base64.b64decode(image).decode() for image in images] or [figure]
            assert all("<svg" in picture for picture in pictures), caption


def test_arrows_between_folders_are_imports() -> None:
    page = (ROOT / "docs/architecture.md").read_text()
    diagram = page.partition("```{relvm-diagram} Imports between folders")[2].partition("```")[0]
    arrows = [pair for line in diagram.splitlines() if "->" in line for pair in pairwise(line.split(" -> "))]
    assert len(arrows) > 15
    for source, target in arrows:
        folder = ROOT / "relvm" / source
        files = list(folder.rglob("*.py")) or [folder.with_suffix(".py")]
        texts = [file.read_text() for file in files]
        assert any(re.search(rf"^\s*from relvm(\.| import ){target}\b", text, re.MULTILINE) for text in texts), source


def test_the_page_of_the_stages_is_made(site: Path) -> None:
    assert 'src="_pages/stages.html#stage=fuse_ops"' in (site / "explore.html").read_text()
    assert "fuse_ops" in (site / "_pages/stages.html").read_text()


def test_every_operator_is_described(site: Path) -> None:
    page, text = (site / "reference/operators.html").read_text(), text_of(site / "reference/operators.html")
    for name, operator in operators().items():
        assert f'id="op-{name}"' in page
        assert " ".join(declarations.call_of(operator).split()) in text
        assert " ".join(operator.doc.split()[:4]).replace("`", "") in text, name
    assert "Types in the example: matmul(f32[2, 2], f32[2, 1]) -> f32[2, 1]" in text


def test_every_command_is_described(site: Path) -> None:
    text = text_of(site / "reference/command-line.html")
    for name, parser in make_parser(COMMANDS).get_default("parsers").items():
        assert f"relvm {name}" in text
        for action in parser._actions:
            assert action.dest == "help" or all(option in text for option in action.option_strings), action


def test_every_table_is_shown(site: Path) -> None:
    """Every table of csrc/tables is shown, except unicode_case.def."""
    names = [name for name in vars(tables) if name.isupper() and not name.startswith("_")]
    declared = {id(getattr(tables, name)) for name in names if isinstance(getattr(tables, name), tuple)}
    assert {id(rows) for rows, _ in declarations.TABLES.values()} == declared - {id(tables.LETTERS)}
    text = " ".join(text_of(page) for page in [site / "executable.html", *(site / "reference").glob("*.html")])
    for rows, columns in declarations.TABLES.values():
        for row in rows:
            cells = (declarations.cell_text(row, field).replace("`", "") for field in columns.values())
            assert all(" ".join(cell.split()) in text for cell in cells), row


def test_every_letter_of_an_operand_is_explained() -> None:
    page = (ROOT / "docs/reference/instructions.md").read_text()
    assert set(re.findall(r"^- `(\w)`: ", page, flags=re.MULTILINE)) == {
        letter for row in tables.OPCODES for letter in row.operands
    }


def test_what_is_not_there_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "conf.py").write_text(
        (ROOT / "docs/conf.py").read_text().replace("__file__", repr(str(ROOT / "docs/conf.py")))
    )
    (tmp_path / "index.md").write_text(
        "# Title\n\n```{relvm-table} opcode\n```\n\n[gone](gone.md#there)\n\n`docs/gone.md`\n\n"
        "```{relvm-picture} Nothing\n1 / 0\n```\n\n```{relvm-picture} Nothing\nx = 1\n```\n\n"
        "```{relvm-diagram} Nothing\na: A\na -> b\n```\n"
    )
    done = build(tmp_path, tmp_path / "built")
    assert done.returncode != 0
    assert "no table opcode: expected one of opcodes" in done.stderr
    assert "relvm-picture: ZeroDivisionError: division by zero" in done.stderr
    assert "relvm-picture: the last line must be an expression" in done.stderr
    assert "relvm-diagram: no box b" in done.stderr
    assert "gone.md" in done.stderr and "unknown document: '/gone'" in done.stderr


# ---- the Python API ----

PUBLIC = [(module, name) for module in python_api.MODULES for name in python_api.public_names(module)]


def test_modules_with_public_names_are_documented() -> None:
    """Every package with an `__all__` is documented, except the command line, which has a separate page."""
    stated = {
        ".".join(("relvm", *path.relative_to(ROOT / "relvm").parent.parts))
        for path in (ROOT / "relvm").rglob("__init__.py")
        if "__all__" in path.read_text() and path.parent.name != "cli"
    } - {"relvm"}  # the front page describes its two names
    assert "relvm.aot" in stated and stated <= set(python_api.MODULES)


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = (site / "reference/python.html").read_text() + (site / "reference/errors.html").read_text()
    for module in python_api.MODULES:
        own = python_api.own_names(module)
        assert own
        for name in own:
            assert f'id="{module}.{name}"' in pages, f"{module}.{name}"
        assert all(name in pages for name in python_api.public_names(module))


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=list(map(".".join, PUBLIC)))
def test_a_public_name_has_a_docstring_with_its_parameters(module: str, name: str) -> None:
    value = getattr(importlib.import_module(module), name)
    for label, documented in described(name, value):
        docstring = inspect.getdoc(documented)
        assert docstring, f"{label} has no docstring"
        missing = [each for each in parameters(documented) if not names(docstring, each)]
        assert not missing, f"the docstring of {label} does not name {', '.join(missing)}"


def names(docstring: str, parameter: str) -> bool:
    """Return whether a docstring describes a parameter: in Parameters or Attributes if it has them, else anywhere."""
    sections = re.split(r"^(\w+)\n-+$", docstring, flags=re.MULTILINE)
    listed = dict(zip(sections[1::2], sections[2::2], strict=True))
    entries = listed.get("Parameters") or listed.get("Attributes")
    if not entries:
        return re.search(rf"\b{parameter}\b", docstring) is not None
    heads = re.findall(r"^\S.*$", entries, flags=re.MULTILINE)
    return parameter in {name.strip(" *") for head in heads for name in head.split(",")}


def described(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield what needs a docstring: a value and, for a class, the public methods and properties that relvm defines."""
    yield name, value
    written = {
        key for base in getattr(value, "__mro__", ()) if base.__module__.startswith("relvm") for key in vars(base)
    }
    for key in sorted(written) if inspect.isclass(value) else ():
        member = inspect.getattr_static(value, key)
        if not key.startswith("_") and (isinstance(member, property) or inspect.isroutine(getattr(value, key))):
            yield f"{name}.{key}", member if isinstance(member, property) else getattr(value, key)


def parameters(documented: Any) -> list[str]:
    """Return the parameters that callers pass.

    A class whose docstring says "Use ... to create one" is not called by users, so it has none.  Derived fields of a
    dataclass are not passed.
    """
    if isinstance(documented, property) or inspect.ismethoddescriptor(documented) or not callable(documented):
        return []
    if inspect.isclass(documented):
        if issubclass(documented, enum.Enum) or re.search(r"\bUse .* to create one\.", documented.__doc__ or ""):
            return []
        if dataclasses.is_dataclass(documented):
            return [f.name for f in dataclasses.fields(documented) if f.init and not f.metadata.get("derived")]
        if "__init__" not in vars(documented) and "__new__" not in vars(documented):
            return []
    return [each for each in inspect.signature(documented).parameters if each not in ("self", "cls")]


def test_a_docstring_without_a_parameter_is_found() -> None:
    def scale(x: float, factor: float) -> float:
        """`x` times something."""
        return x * factor

    assert parameters(scale) == ["x", "factor"]
    with pytest.raises(AssertionError, match="does not name factor"):
        module = type(sys)("made_up")
        module.scale = scale
        sys.modules["made_up"] = module
        try:
            test_a_public_name_has_a_docstring_with_its_parameters("made_up", "scale")
        finally:
            del sys.modules["made_up"]


SEARCH = """
const [queries, done] = arguments;
function search() {
  if (!Search._index) return setTimeout(search, 20);  // the script with the index is loaded by the page
  done(queries.map((query) => {
    const [document, , anchor] = Search._performSearch(...Search._parseQuery(query)).at(-1) || ["nothing", "", ""];
    return document + (anchor || "");
  }));
}
search();
"""

# Search terms of readers, with the section that answers each.
SEARCHES = {
    "C++": "cpp#ship-it-in-a-c-program",
    "docker": "how-to#run-in-a-container",
    "fp16": "faq#does-relvm-run-fp16-models",
    "warm up": "slow#the-first-result-takes-long",
    "dynamic batch": "how-to#fix-or-bound-a-dimension",
    "memory limit": "security#limits-of-a-run",
    "raspberry": "platforms#raspberry-pi",
    "torch": "pytorch#from-pytorch",
    "quantize": "quantize#quantize-a-model",
    "slow": "slow#why-is-my-model-slow",
}


def test_terms_of_the_search_are_unique() -> None:
    terms = [term for terms in search_terms.TERMS.values() for term in terms]
    assert len(set(terms)) == len(terms)
    assert all(term == term.casefold().strip() for term in terms)


def test_the_search_finds_the_right_section_first(site: Path, browser: Any) -> None:
    browser.get(f"{(site / 'search.html').as_uri()}?q=relvm")
    listed = {term: place for place, terms in search_terms.TERMS.items() for term in terms}
    queries = [*SEARCHES, *listed]
    found = dict(zip(queries, browser.execute_async_script(SEARCH, queries), strict=True))
    assert {query: found[query] for query in SEARCHES} == SEARCHES
    wrong = {
        term: found[term]
        for term, place in listed.items()
        if found[term] != place and not ("#" not in place and found[term].startswith(f"{place}#"))
    }
    assert not wrong


def test_a_typed_search_shows_the_section(site: Path, browser: Any) -> None:
    browser.get((site / "index.html").as_uri())
    field = browser.find_element("name", "q")
    field.send_keys("C++\n")
    wait = importlib.import_module("selenium.webdriver.support.ui").WebDriverWait(browser, 60)
    first = wait.until(lambda page: page.find_elements("css selector", "#search-results ul.search li a"))[0]
    assert first.text == "Ship it in a C++ program"
    assert "/cpp.html" in first.get_attribute("href")
