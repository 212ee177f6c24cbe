"""The documents refer to existing files, names and commands, and their examples and instructions work."""

from __future__ import annotations

import doctest
import re
import subprocess
from pathlib import Path

import onnx
import pytest
from support.documents import DOCUMENTS, ROOT, anchors, blocks, commands, follow, prose, small_model

import relvm.ops  # noqa: F401  (declares the operators)
from relvm.cli.help import COMMANDS
from relvm.cli.main import make_parser
from relvm.ir.operator import operators
from relvm.passes.pipeline import build_pipeline

PATH = re.compile(r"`([A-Za-z0-9_.\-]+(?:/[A-Za-z0-9_.\-]+)*/?(?:\.[a-z]+)?)`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SUFFIXES = (".py", ".c", ".h", ".def", ".md", ".ipynb", ".cases", ".toml", ".relvm", ".json")

# Pages on which all blocks are run in order.  On other pages only the Python blocks are run.
SHOWING = ("docs/fusion.md", "docs/quantize.md", "docs/slow.md")  # text blocks show what the block before prints
FOLLOWED = ("docs/tutorial.md", "docs/how-to.md", *SHOWING)
ELSEWHERE = {
    "README.md": "tests/docs/test_readme.py",
    "docs/reference/errors.md": "tests/support/error_examples.py",
    "docs/language.md": "tests/frontend/test_text_document.py",
    "docs/machine.md": "tests/vm/test_machine_document.py",
    "examples/serve/README.md": "tests/examples/test_serve_clients.py",
}
# docs/contributing.md changes files: tests/docs/test_contributing.py follows it.
WITH_PYTHON = [
    d for d in DOCUMENTS if d.name != "contributing.md" and any(language == "python" for language, _ in blocks(d))
]
RUN_HERE = [d for d in WITH_PYTHON if str(d.relative_to(ROOT)) not in (*FOLLOWED, *ELSEWHERE)]


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_path_a_document_names_exists(document: Path) -> None:
    text = document.read_text()
    created = re.findall(r"^Create `(.*)`:$", text, re.MULTILINE)  # by the recipes in docs/contributing.md
    for name in PATH.findall(text):
        if name not in created and "/" in name and (name.endswith(SUFFIXES) or name.endswith("/")):
            assert (ROOT / name).exists() or (document.parent / name).exists(), f"{document.name} names {name}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in LINK.findall(prose(document)):
        place, _, anchor = link.partition("#")
        target = (document.parent / place).resolve() if place else document
        assert target.exists() and target.is_relative_to(ROOT), f"{document.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{document.name} links to {link}: there are {sorted(anchors(target))}"


@pytest.mark.parametrize("document", RUN_HERE, ids=name_of)
def test_examples_in_documents_run(document: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python blocks of a document run one after another, and share variables."""
    monkeypatch.chdir(tmp_path)
    onnx.save(small_model(), "model.onnx")
    namespace: dict = {"__name__": "page"}
    for language, text in blocks(document):
        if language == "python":
            exec(text, namespace)


@pytest.mark.parametrize("name", FOLLOWED)
def test_a_page_can_be_followed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ROOT / name in WITH_PYTHON
    follow(ROOT / name, tmp_path, monkeypatch, shows=name in SHOWING)


def test_the_first_page_shows_what_its_programs_print(
    capsys: pytest.CaptureFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(small_model(), "model.onnx")
    shown = [(language, text) for language, text in blocks(ROOT / "docs/index.md") if language in ("python", "text")]
    assert [language for language, _ in shown] == ["python", "text"] * 2
    namespace: dict = {"__name__": "page"}
    for (_, program), (_, printed) in zip(shown[::2], shown[1::2], strict=True):
        exec(program, namespace)
        assert capsys.readouterr().out == printed


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/tutorial.md", "docs/how-to.md"])
def test_a_first_page_begins_with_a_model(name: str) -> None:
    program = next(text for language, text in blocks(ROOT / name) if language == "python")
    assert "relvm.load_model(" in program and "onnx.helper" not in program


# Operators without an example: only passes and importers create them, with packed tables or weights, or many inputs.
WITHOUT_EXAMPLE = {
    "conv_by_size",
    "conv_integer_packed",
    "conv_packed",
    "conv_winograd",
    "gru",
    "lstm",
    "matmul_blockwise_int8",
    "matmul_blockwise_quant",
    "matmul_integer_packed",
    "matmul_packed",
    "pairwise_coupling",
    "quantize_blocks",
    "random_bits",
    "rnn",
    "string_lookup",
    "string_match",
    "string_tokens",
    "tree_ensemble",
    "tree_ensemble_compact",
}


def test_every_operator_has_an_example_but_those_of_passes_and_importers() -> None:
    assert {name for name, operator in operators().items() if ">>> run(" not in operator.doc} == WITHOUT_EXAMPLE


@pytest.fixture(scope="module")
def run_of_the_page() -> dict:
    """Return the globals after the first block of the operators page, which defines the function `run`."""
    page: dict = {}
    exec(next(text for _, text in blocks(ROOT / "docs/reference/operators.md") if "def run(" in text), page)
    return page


@pytest.mark.parametrize("name", sorted(set(operators()) - WITHOUT_EXAMPLE))
def test_the_examples_of_an_operator_give_what_they_show(name: str, run_of_the_page: dict) -> None:
    examples = doctest.DocTestParser().get_doctest(operators()[name].doc, run_of_the_page, name, None, None)
    assert examples.examples and f"{name}(" in examples.examples[0].source
    assert doctest.DocTestRunner().run(examples).failed == 0


def test_documents_that_other_tests_run_are_there() -> None:
    for name, test in ELSEWHERE.items():
        assert ROOT / name in WITH_PYTHON and Path(name).name in (ROOT / test).read_text()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_is_one(document: Path) -> None:
    """Commands in blocks are valid.  Commands in the text have a valid name and options, but need not be complete."""
    parser = make_parser(COMMANDS)
    for language, text in blocks(document):
        for words in commands(text) if language == "sh" else ():
            if words[0] == "relvm":
                parser.parse_args(words[1:])  # raises SystemExit if the command is invalid
    choices = parser.get_default("parsers")
    for words in re.findall(r"`relvm (?!COMMAND)([^`]+)`", prose(document)):
        command, *rest = words.split()
        assert command in choices, words
        known = {option for action in choices[command]._actions for option in action.option_strings}
        assert known.issuperset(word for word in rest if word.startswith("-")), words


def test_every_notebook_is_listed() -> None:
    listed = LINK.findall((ROOT / "docs/notebooks.md").read_text())
    assert {f"../notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb")} == set(listed)


def test_figures_are_those_that_were_measured() -> None:
    """Numbers in docs/faq.md, except percentages and versions, also occur in benchmarks/README.md."""
    measured = set(re.findall(r"\d[\d.,]*\d", (ROOT / "benchmarks/README.md").read_text()))
    questions = re.sub(r"(?:version|TVM) [\d.]+", "", prose(ROOT / "docs/faq.md"))
    stated = set(re.findall(r"\d[\d.,]*\d(?! %)", questions))
    assert len(stated) > 20
    assert not stated - measured


@pytest.mark.parametrize("document", sorted(ROOT.glob("docs/**/*.md")), ids=name_of)
def test_code_fits_into_the_column_of_the_site(document: Path) -> None:
    """At most 95 characters.  The site wraps the messages of errors."""
    lines = [line for _, text in blocks(document) for line in text.splitlines()]
    assert not [line for line in lines if len(line) > 95 and not line.startswith("relvm.errors.")]


def test_nothing_generated_or_heavy_is_committed() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        if name.startswith("tests/vm/versions/"):  # small files, which tests/vm/test_versions.py limits to 4 kB
            continue
        if name.startswith("tests/frontend/pt2/"):  # programs that only PyTorch can write, with its results
            assert (ROOT / name).stat().st_size < 40_000, name
            continue
        if name.startswith("tests/fuzz/corpus/"):
            assert (ROOT / name).stat().st_size < 2048, name
            continue
        assert not name.endswith((".onnx", ".so", ".rvm", ".o", ".npz")), name


def test_the_page_of_the_passes_lists_the_pipeline() -> None:
    text = (ROOT / "docs/architecture/passes.md").read_text()
    diagram = text.partition("```text\n")[2].partition("```")[0]
    listed = re.findall(r"\b[a-z]+(?:_[a-z]+)*\b(?=,|\n)", diagram)
    assert listed == [made.name for made in build_pipeline("c")]
