"""Fixtures for tests of the server in examples/serve."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import LAYERS
from support.modes import MODES

from relvm import vm
from relvm.frontend.text import parse_module


@pytest.fixture(scope="module", params=MODES)
def layers(request: pytest.FixtureRequest) -> vm.Executable:
    return vm.build(parse_module(LAYERS), request.param)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "model.rvm"
    vm.build(parse_module(LAYERS), "compiled").save(path)
    return path


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0), backlog=256) as opened:
        yield opened
