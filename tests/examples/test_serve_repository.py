"""Tests of the model folder of examples/serve: finding models, and loading and unloading them during requests."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from serve.__main__ import main as serve_main
from serve.__main__ import make_parser, settings_of
from serve.app import make_app
from serve.repository import Source, find_models
from serve.settings import Settings
from serving import client_of, metric, output, post, rows, serving

import relvm
from relvm import vm
from relvm.errors import RelvmError
from relvm.frontend.text import parse_module


def save(path: Path, body: str = "x", type_: str = "f32[n]") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    vm.build(parse_module(f"def main(x: {type_}) -> {type_} {{ return {body} }}"), target="bytecode").save(path)
    return path


def shown(source: Source, folder: Path) -> tuple[str, str, str]:
    content = source.content
    return source.name, source.version, str(content.relative_to(folder) if isinstance(content, Path) else content)


def test_files_and_folders_are_found(tmp_path: Path) -> None:
    for name in (
        "a.onnx",
        "b.rvm",
        "c.relvm",
        "d.so",
        "two words.rvm",
        "a.txt",
        "a.onnx.data",
        ".hidden.onnx",
        "folder/model.onnx",
        "folder/other.onnx",
        "triton/config.pbtxt",
        "triton/1/model.onnx",
        "triton/12/model.rvm",
        "triton/012/model.onnx",
        "triton/x/model.onnx",
        "twice/model.onnx",
        "twice/model.rvm",
        "clash.onnx",
        "clash/1/model.onnx",
        "clash/2/model.onnx",
        "empty/readme.md",
        ".git/1/model.onnx",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = [shown(each, tmp_path) for each in find_models(tmp_path)]
    right = [row for row in found if "expected" not in row[2]]
    assert right == [
        ("a", "1", "a.onnx"),
        ("b", "1", "b.rvm"),
        ("c", "1", "c.relvm"),
        ("clash", "2", "clash/2/model.onnx"),
        ("d", "1", "d.so"),
        ("folder", "1", "folder/model.onnx"),
        ("triton", "1", "triton/1/model.onnx"),
        ("triton", "12", "triton/12/model.rvm"),
        ("two words", "1", "two words.rvm"),
    ]
    wrong = {(name, version): reason for name, version, reason in found if "expected" in reason}
    assert set(wrong) == {("clash", "1"), ("empty", "1"), ("twice", "1")}
    assert "got" in wrong["twice", "1"] and "model.onnx" in wrong["twice", "1"] and "model.rvm" in wrong["twice", "1"]
    assert [shown(each, tmp_path) for each in find_models(tmp_path / "a.onnx")] == [("a", "1", "a.onnx")]


def test_a_model_starts_with_bytecode_and_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server loads models in the same way as relvm.load_model."""
    monkeypatch.setenv("RELVM_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "model.relvm").write_text("def main(x: f32[n, 64]) -> f32[n, 64] = tanh(multiply(x, x))")
    x = rows(3)
    expected = relvm.load_model(tmp_path / "models" / "model.relvm", exec_mode="bytecode", target="bytecode")(x)

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        model = service.repository.find("model", None)
        assert output(await post(client, x)).tobytes() == expected.numpy().tobytes()
        assert model.runner.executable.upgrade is not None
        assert await asyncio.to_thread(model.runner.executable.upgrade.wait, 50)
        assert output(await post(client, x)).tobytes() == expected.numpy().tobytes()

    serving(test, tmp_path / "models", workers=1)


def test_batches_are_of_one_model(tmp_path: Path) -> None:
    """Only the model named in the settings is batched.  Requests to other models run without waiting."""
    for name in ("model", "other"):
        save(tmp_path / f"{name}.rvm", "multiply(x, x)", "f32[n, 64]")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        x = rows(1)
        paths = ["/v2/models/model/infer", "/v2/models/other/infer"] * 8
        answers = await asyncio.gather(*(post(client, x, path) for path in paths))
        assert all(np.array_equal(output(each), x * x) for each in answers)
        assert await metric(client, "relvm_batch_rows_count") == 2
        assert await metric(client, "relvm_requests_total", status="200") == 8
        assert await metric(client, "relvm_requests_total", status="200", model="other") == 8
        text = (await client.get("/metrics")).text
        assert 'relvm_batch_rows_count{model="other"' not in text

    serving(test, tmp_path, workers=1, model_batches={"model": 4}, max_wait=50)


# ---- changing models ----


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[tuple[Path, threading.Event, threading.Event]]:
    """Yield an executable whose runs wait, an event that a run sets, and an event for which runs wait."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(x: Any) -> Any:
        inside.set()
        assert go_on.wait(30)
        return x

    vm.register_func("test.serve.wait", wait, override=True)
    text = 'def main(x: f32[n, 2]) => f32[n, 2] { return packed("test.serve.wait", x) : f32[n, 2] }'
    executable = vm.build(parse_module(text), target="numpy")
    yield executable, inside, go_on
    go_on.set()
    vm.unregister_func("test.serve.wait")


async def until(event: threading.Event) -> None:
    while not event.is_set():
        await asyncio.sleep(0.001)


def test_a_model_that_is_unloaded_answers_the_requests_that_it_has(changing: Any) -> None:
    executable, inside, go_on = changing

    async def test() -> None:
        async with client_of({"model": executable}, control=True, workers=1) as (client, _):
            asked = [asyncio.create_task(post(client, rows(1, 2))) for _ in range(3)]
            await until(inside)
            unloading = asyncio.create_task(client.post("/v2/repository/models/model/unload"))
            while (await client.get("/v2/models/model/ready")).status_code == 200:
                await asyncio.sleep(0)
            late = await post(client, rows(1, 2))
            assert (late.status_code, late.json()["error"]) == (503, "model model is not loaded: unloaded")
            assert (await client.get("/v2/health/ready")).status_code == 200
            assert not unloading.done()
            go_on.set()
            assert [(await each).status_code for each in (*asked, unloading)] == [200] * 4
            assert (await client.post("/v2/repository/models/model/load")).status_code == 200
            assert (await post(client, rows(1, 2))).status_code == 200

    asyncio.run(asyncio.wait_for(test(), 60))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("relvm_")]


def test_a_slow_model_does_not_stop_another(changing: Any) -> None:
    slow, inside, go_on = changing
    quick = vm.build(parse_module("def main(x: f32[n, 2]) -> f32[n, 2] { return x }"), target="bytecode")

    async def test() -> None:
        models = {"model": slow, "quick": quick}
        async with client_of(models, workers=1, max_queue=2, timeout=0.5) as (client, _):
            asked = [asyncio.create_task(post(client, rows(1, 2)))]
            await until(inside)
            asked += [asyncio.create_task(post(client, rows(1, 2))) for _ in range(3)]
            for _ in range(20):
                assert (await post(client, rows(1, 2), "/v2/models/quick/infer")).status_code == 200
            assert sorted([(await each).status_code for each in asked]) == [503, 504, 504, 504]
            go_on.set()

    asyncio.run(asyncio.wait_for(test(), 60))


def test_no_request_is_lost_when_a_model_is_loaded_again(tmp_path: Path) -> None:
    """The model file is replaced each time.  Each request gets the result of the old or the new model."""
    path = save(tmp_path / "model.rvm", "add(x, const(i64[], 0))", "i64[n]")
    x = np.arange(3)
    ends = False

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        nonlocal ends
        seen: set[int] = set()

        async def ask() -> None:
            while not ends:
                found = output(await post(client, x)) - x
                assert (found == found[0]).all()
                seen.add(int(found[0]))

        asking = [asyncio.create_task(ask()) for _ in range(4)]
        for number in range(1, 6):
            save(path, f"add(x, const(i64[], {number}))", "i64[n]")
            assert (await client.post("/v2/repository/models/model/load")).status_code == 200
            while number not in seen:
                await asyncio.sleep(0.001)
        ends = True
        await asyncio.gather(*asking)
        assert seen == set(range(6))
        text = (await client.get("/metrics")).text
        assert 'status="200"' in text and 'status="503"' not in text

    serving(test, tmp_path, control=True, workers=1)


def test_the_memory_of_a_model_is_freed_when_it_is_loaded_again(tmp_path: Path) -> None:
    """Memory is freed at once, not later by Python's cycle collector, which does not consider the size of a model."""
    save(tmp_path / "model.rvm", "x", "f32[n, 2]")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        assert (await post(client, rows(1, 2))).status_code == 200
        old = weakref.ref(service.repository.find("model", None).runner.executable)
        assert (await client.post("/v2/repository/models/model/load")).status_code == 200
        for _ in range(100):
            if old() is None:
                return
            await asyncio.sleep(0.01)
        raise AssertionError("the executable is still there")

    gc.disable()
    try:
        serving(test, tmp_path, control=True, workers=1)
    finally:
        gc.enable()


def test_versions_come_and_go(tmp_path: Path) -> None:
    save(tmp_path / "model" / "1" / "model.rvm", "add(x, const(i64[], 1))", "i64[n]")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        async def version() -> int:
            return int(output(await post(client, np.array([0])))[0])

        assert await version() == 1
        save(tmp_path / "model" / "10" / "model.rvm", "add(x, const(i64[], 10))", "i64[n]")
        save(tmp_path / "model" / "9" / "model.rvm", "add(x, const(i64[], 9))", "i64[n]")
        (tmp_path / "model" / "11").mkdir()
        (tmp_path / "model" / "11" / "model.rvm").write_bytes(b"no executable")
        answer = await client.post("/v2/repository/models/model/load")
        assert answer.status_code == 400 and answer.json()["error"].startswith("version 11: ")
        assert await version() == 10
        assert (await client.get("/v2/models/model")).json()["versions"] == ["1", "9", "10"]
        (tmp_path / "model" / "10" / "model.rvm").unlink()
        (tmp_path / "model" / "11" / "model.rvm").unlink()
        assert (await client.post("/v2/repository/models/model/load")).status_code == 200
        assert await version() == 9
        index = (await client.post("/v2/repository/index", json={"ready": True})).json()
        assert [each["version"] for each in index] == ["1", "9"]
        index = {each["version"]: each["reason"] for each in (await client.post("/v2/repository/index")).json()}
        assert index["10"] == "its file was removed"

    serving(test, tmp_path, control=True, workers=1)


def test_loads_at_the_same_time_follow_one_another(tmp_path: Path) -> None:
    save(tmp_path / "model.rvm", "x", "f32[n, 2]")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        actions = ["load", "unload", "load", "load", "unload", "load"] * 3
        answers = await asyncio.gather(*(client.post(f"/v2/repository/models/model/{each}") for each in actions))
        assert {each.status_code for each in answers} == {200}
        assert (await post(client, rows(1, 2))).status_code == 200

    serving(test, tmp_path, control=True, workers=1)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("relvm_")]


def test_a_failure_of_our_own_stops_only_its_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import serve.repository as repository

    save(tmp_path / "model.rvm", "x", "f32[n, 2]")
    save(tmp_path / "odd.rvm")
    load = repository._load
    monkeypatch.setattr(
        repository, "_load", lambda path, settings: load(path, settings) if path.stem != "odd" else 1 / 0
    )

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        assert (await post(client, rows(1, 2))).status_code == 200
        answer = await client.get("/v2/models/odd")
        assert answer.status_code == 503 and "internal error" in answer.json()["error"]

    serving(test, tmp_path, workers=1)
    assert "ZeroDivisionError" in caplog.text


# ---- startup ----


def test_clients_load_nothing_unless_the_operator_allows_it(tmp_path: Path) -> None:
    save(tmp_path / "model.rvm", "x", "f32[n, 2]")

    async def test(client: httpx.AsyncClient, service: Any) -> None:
        save(tmp_path / "new.rvm")
        for action in ("load", "unload"):
            assert (await client.post(f"/v2/repository/models/model/{action}")).status_code == 404
        assert (await client.get("/v2")).json()["extensions"] == ["binary_tensor_data"]
        assert [each["name"] for each in (await client.post("/v2/repository/index")).json()] == ["model"]
        for body in (b"[]", b"{", b'{"ready": 1}'):
            assert (await client.post("/v2/repository/index", content=body)).status_code == 400

    serving(test, tmp_path, workers=1)


def test_a_server_without_any_model_ends(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    assert serve_main([str(tmp_path)]) == 1
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    (tmp_path / "type.relvm").write_text("def main(x: list[f32[2]]) -> list[f32[2]] { return x }")
    assert serve_main([str(tmp_path)]) == 1
    assert serve_main([str(tmp_path / "none")]) == 1
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == f"serve: {tmp_path}: the folder contains no models"
    assert "bad.onnx" in second and "input x is list[f32[2]]: the protocol cannot send it" in second
    assert str(tmp_path / "none") in third


def test_batches_are_options_for_all_or_single_models() -> None:
    options = make_parser().parse_args(["models", "--max-batch", "8", "--max-batch", "a=b=4", "--max-batch", "c=1"])
    settings = Settings(**settings_of(options))
    assert (settings.max_batch, settings.model_batches) == (8, {"a=b": 4, "c": 1})
    assert Settings(**settings_of(make_parser().parse_args(["models"]))).max_batch == 1
    with pytest.raises(SystemExit):
        make_parser().parse_args(["models", "--max-batch", "a="])


def test_a_name_of_no_model_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    save(tmp_path / "softmax.rvm")
    assert serve_main([str(tmp_path), "--max-batch", "softmaks=8"]) == 1
    said = capsys.readouterr().err
    assert said == "serve: --max-batch softmaks=...: no model softmaks; did you mean softmax?\n"
    make_app(tmp_path, model_batches={"later": 8}, control=True)


def test_a_model_that_cannot_be_batched_is_named(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    from serve.__main__ import expect_models

    save(tmp_path / "scalar.rvm", "x", "f32[]")
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    app = make_app(tmp_path, max_batch=8, workers=1)
    expect_models(app.state.service, tmp_path)
    said = capsys.readouterr().err
    assert "serve: model scalar cannot be batched: input x is f32[]; its first axis is not the batch" in said
    assert "serve: model bad, version 1, is not served: " in said and said.count("\n") == 2
    app = make_app(tmp_path, model_batches={"scalar": 8}, workers=1)
    assert "cannot be batched" in app.state.service.repository.reasons["scalar", "1"]
    with pytest.raises(Exception, match="cannot be batched") as caught:
        expect_models(app.state.service, tmp_path)
    assert not isinstance(caught.value, RelvmError)
