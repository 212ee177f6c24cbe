"""The VS Code extension agrees with the language, the commands and the debug adapter, and compiles."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from editors.test_textmate_grammar import EXAMPLE
from support.documents import ROOT

from relvm.cli import dap
from relvm.cli.help import COMMANDS
from relvm.cli.main import make_parser
from relvm.editors.pygments_lexer import RelvmLexer
from relvm.editors.textmate_grammar import textmate_grammar

FOLDER = ROOT / "editors" / "vscode"
MANIFEST = json.loads((FOLDER / "package.json").read_text())
PARSERS = make_parser(COMMANDS).get_default("parsers")
CONTRIBUTED = MANIFEST["contributes"]
SOURCES = "\n".join(path.read_text() for path in sorted((FOLDER / "src").glob("*.ts")))


def test_the_language_is_that_of_the_lexer_and_the_grammar() -> None:
    (language,) = CONTRIBUTED["languages"]
    (grammar,) = CONTRIBUTED["grammars"]
    assert [f"*{extension}" for extension in language["extensions"]] == RelvmLexer.filenames
    assert language["id"] == grammar["language"] == RelvmLexer.aliases[0]
    assert grammar["scopeName"] == textmate_grammar()["scopeName"]
    assert f"python -P -m relvm.editors.textmate_grammar > {grammar['path'][2:]}" in MANIFEST["scripts"]["grammar"]
    packaged = (FOLDER / ".vscodeignore").read_text().splitlines()
    for path in (grammar["path"], language["configuration"], MANIFEST["main"]):
        assert f"!{path[2:]}" in packaged


def test_lines_are_indented_as_the_formatter_does() -> None:
    rules = json.loads((FOLDER / "language-configuration.json").read_text())["indentationRules"]
    depth = 0
    for line in EXAMPLE.splitlines():
        depth -= re.search(rules["decreaseIndentPattern"], line) is not None
        assert not line or len(line) - len(line.lstrip()) == 2 * depth, line
        depth += re.search(rules["increaseIndentPattern"], line) is not None
    assert depth == 0
    for line in ('y = f("{")', "y = x  # {", 'const s = "\\"{"'):
        assert not re.search(rules["increaseIndentPattern"], line)


def test_launch_has_the_attributes_of_the_debug_adapter() -> None:
    (debugger,) = CONTRIBUTED["debuggers"]
    attributes = debugger["configurationAttributes"]["launch"]["properties"]
    assert attributes.keys() == {"program", "stopOnEntry", *dap._TEXTS, *dap._MAPPINGS, *dap._SWITCHES}
    debug = PARSERS["debug"]._option_string_actions
    assert attributes["execMode"]["enum"] == list(debug["--exec-mode"].choices)
    assert attributes["function"]["default"] == debug["--function"].default
    assert attributes["target"]["default"] == debug["--target"].default
    assert {name for name in attributes if attributes[name]["type"] == "boolean"} == {"stopOnEntry", *dap._SWITCHES}
    assert {name for name in attributes if attributes[name]["type"] == "object"} == dap._MAPPINGS.keys()
    given = [*debugger["initialConfigurations"], *(each["body"] for each in debugger["configurationSnippets"])]
    for configuration in given:
        assert configuration.keys() <= {"type", "request", "name", *attributes}
        assert configuration["type"] == debugger["type"]
    table = (ROOT / "docs" / "editors.md").read_text().partition("The request `launch`")[2].partition("\n## ")[0]
    documented = {
        name for cell in re.findall(r"^\| (`.*?) \|", table, flags=re.M) for name in re.findall(r"`(\w+)`", cell)
    }
    assert documented == {"noDebug", *attributes}


def test_the_commands_exist() -> None:
    contributed = {each["command"] for each in CONTRIBUTED["commands"]}
    used = set(re.findall(r'[cC]ommand\("(relvm\.\w+)"', SOURCES))
    assert used == contributed
    for items in CONTRIBUTED["menus"].values():
        assert {each["command"] for each in items} <= contributed
    tasks = CONTRIBUTED["taskDefinitions"][0]["properties"]["command"]["enum"]
    assert set(tasks) <= PARSERS.keys()
    calls = re.findall(r'relvm(?:Arguments|Task)\("(\w+)"(.*)', SOURCES)
    assert {name for name, _ in calls} >= {"lsp", "dap", "show", "explore", "compile", "run"}
    for name, rest in calls:
        assert set(re.findall(r'"(-.*?)"', rest)) <= PARSERS[name]._option_string_actions.keys(), name


def test_the_problem_matcher_finds_the_place_of_an_error(tmp_path: Path) -> None:
    (matcher,) = CONTRIBUTED["problemMatchers"]
    pattern = matcher["pattern"]
    for text, line, column in (("def main(x: i64) -> i64 {\n  return z\n}", 2, 10), ("def main(", 1, 10)):
        (tmp_path / "a file.relvm").write_text(text)
        command = [sys.executable, "-P", "-m", "relvm", "run", "a file.relvm", "--random"]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr
        found = next(filter(None, (re.match(pattern["regexp"], each) for each in printed.splitlines())))
        assert found[pattern["file"]] == "a file.relvm"
        assert (int(found[pattern["line"]]), int(found[pattern["column"]])) == (line, column)
        assert found[pattern["message"]]


@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is missing, so the extension is not compiled")
def test_the_extension_compiles(tmp_path: Path) -> None:
    """Type-check and bundle the extension with the locked versions of the packages that this needs."""
    for name in ("package-lock.json", "tsconfig.json"):
        shutil.copy(FOLDER / name, tmp_path)
    shutil.copytree(FOLDER / "src", tmp_path / "src")
    needed = ("@types/node", "@types/vscode", "esbuild", "typescript", "vscode-languageclient")
    packages = {name: MANIFEST["devDependencies"][name] for name in needed}
    (tmp_path / "package.json").write_text(json.dumps(MANIFEST | {"devDependencies": packages}))
    environment = os.environ | {"npm_config_update_notifier": "false"}
    for command in (["install", "--no-audit", "--no-fund", "--ignore-scripts"], ["exec", "tsc"], ["run", "bundle"]):
        done = subprocess.run(["npm", *command], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"npm {' '.join(command)}\n{done.stdout}{done.stderr}"
    assert 'require("vscode")' in (tmp_path / MANIFEST["main"]).read_text()
