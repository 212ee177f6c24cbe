"""The digest of a model includes the files with external data, also those that only subgraphs use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from frontend.onnx_models import onnx

import relvm
from relvm.errors import RelvmFormatError
from relvm.frontend.onnx_bytes import content_digest, external_files, read_source
from relvm.frontend.onnx_messages import check_model
from relvm.runtime.file_io import read_buffer

pytestmark = pytest.mark.usefixtures("cache")

X = np.float32([1, 2])


def external(tensor: onnx.TensorProto, location: str, folder: Path, values: np.ndarray) -> None:
    """Write `values` to a file as the external data of a tensor."""
    (folder / location).write_bytes(values.tobytes())
    tensor.ClearField("float_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in (("location", location), ("offset", "0"), ("length", str(values.nbytes))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Save a model with external data in the main graph and in a branch of an If."""
    proto = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x, bool c) => (float[2] y) <float[2] w = {1, 2}> {
          s = Add(x, w)
          y = If(c) <then_branch = t () => (float[2] a) { k = Constant<value = float[2] {1, 1}>()  a = Add(s, k) },
                     else_branch = e () => (float[2] b) { b = Identity(s) }>
        }"""
    )
    external(proto.graph.initializer[0], "w.bin", tmp_path, np.float32([10, 20]))
    branch = next(each for each in proto.graph.node[1].attribute if each.name == "then_branch").g
    external(branch.node[0].attribute[0].t, "k.bin", tmp_path, np.float32([100, 200]))
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    return tmp_path / "m.onnx"


def run(model: Path) -> list[float]:
    loaded = relvm.load_model(model, threads=1)
    result = loaded(X, np.array(True)).numpy().tolist()
    loaded.wait_compiled()  # the build is then in the cache
    return result


def test_all_files_are_found(model: Path) -> None:
    content = model.read_bytes()
    assert external_files(check_model(memoryview(content), "model")) == ["k.bin", "w.bin"]
    source = read_source(model)
    assert source.digest and {path.name for path in source.files} == {"k.bin", "w.bin"}


def test_a_model_with_external_data_is_cached_until_a_file_changes(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(model) == [111, 222]
    with monkeypatch.context() as patch:
        patch.setattr("relvm.frontend.onnx.from_onnx", None)  # a cached model is not imported
        assert run(model) == [111, 222]
    for name, values, result in (("w.bin", [0, 0], [101, 202]), ("k.bin", [5, 5], [6, 7])):
        (model.parent / name).write_bytes(np.float32(values).tobytes())
        assert run(model) == result


def test_models_without_external_data_need_no_folder() -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> location (float[2] location) => (float[2] y) { y = Exp(location) }'
    )
    content = proto.SerializeToString()
    assert b"\x08location" in content  # which is not the key of external data here
    assert read_source(content).digest == content_digest(content)


def test_what_has_no_digest(model: Path) -> None:
    content = model.read_bytes()
    assert read_source(content).digest == ""  # the folder of the external data is not known
    for name in (b"../xx", b"v.bin", b"\xff.bin", b"w\0bin"):
        changed = content.replace(b"w.bin", name)
        assert changed != content
        model.write_bytes(changed)
        source = read_source(model)
        assert (source.digest, source.files) == ("", {})
    with pytest.raises(
        RelvmFormatError, match=r"^model is not an ONNX model: opset_import\[0\], byte \d+: the file .* ends"
    ):
        read_source(content[:-1])


def test_every_byte_of_a_large_model_changes_the_digest() -> None:
    content = bytes(9 << 20)  # three blocks, which several threads hash
    digests = {content_digest(content), content_digest(content[:-1]), content_digest(content[: 8 << 20])}
    for at in (0, (4 << 20) - 1, 4 << 20, len(content) - 1):
        digests.add(content_digest(content[:at] + b"\1" + content[at + 1 :]))
    assert len(digests) == 7
    assert content_digest(content) == content_digest(memoryview(bytearray(content)))


AT_THE_END = {
    "thread": "threading.Thread(target=lambda: (threading.main_thread().join(), digest())).start()",
    "exit handler": "atexit.register(digest)",
    "no threads": "threading.Thread.start = fail\ndigest()",
}


@pytest.mark.parametrize("when", AT_THE_END)
def test_a_digest_does_not_need_threads(when: str) -> None:
    """No thread can be started while the interpreter exits, or if the limit of the system is reached."""
    program = f"""
import atexit, threading
from relvm.frontend.onnx_bytes import content_digest
def fail(self):
    raise RuntimeError("can't start new thread")
def digest():
    print(content_digest(bytes(9 << 20)))
{AT_THE_END[when]}
"""
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr) == (content_digest(bytes(9 << 20)), "")


def test_a_model_is_read_only_once(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def counted(path: str, shown: str | None = None) -> memoryview:
        read.append(Path(shown or path).name)
        return read_buffer(path, shown)

    monkeypatch.setattr("relvm.frontend.onnx_bytes.read_buffer", counted)
    monkeypatch.setenv("RELVM_CC", "none")  # the build in the background would read the file again
    relvm.load_model(model, threads=1)
    assert sorted(read) == ["k.bin", "m.onnx", "w.bin"]


def varint(number: int) -> bytes:
    low = bytes([number & 127])
    return low if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


LOCATION, VALUE = field(1, b"location"), field(2, b"w.bin")
ENTRIES = {
    "the usual encoding": LOCATION + VALUE,
    "a length with a superfluous byte": b"\n\x88\x00location" + VALUE,
    "a key with a superfluous byte": b"\x8a\x00\x08location" + VALUE,
    "a value with a superfluous byte": LOCATION + b"\x12\x85\x00w.bin",
    "the value first": VALUE + LOCATION,
    "an unknown field between": LOCATION + field(9, b"x") + VALUE,
    "two keys": field(1, b"length") + LOCATION + VALUE,
    "two values, of which the last counts": LOCATION + field(2, b"v.bin") + VALUE,
    "two values after an unknown field": LOCATION + field(2, b"v.bin") + field(9, b"x") + VALUE,
}


@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_a_changed_file_is_read_again_whatever_the_encoding_of_its_name(entry: bytes, tmp_path: Path) -> None:
    proto = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[2] x) => (float[2] y) { y = Add(x, w) }'
    )
    tensor = b"\x08\x02\x10\x01" + field(8, b"w") + field(13, entry) + b"\x70\x01"
    graph = proto.graph.SerializeToString() + field(5, tensor)
    proto.ClearField("graph")
    model = tmp_path / "m.onnx"
    model.write_bytes(proto.SerializeToString() + field(7, graph))
    (tmp_path / "v.bin").write_bytes(bytes(8))
    for number in (1, 5):
        (tmp_path / "w.bin").write_bytes(np.float32([number, number]).tobytes())
        loaded = relvm.load_model(model, threads=1)
        assert loaded(X).numpy().tolist() == (X + number).tolist()
        loaded.wait_compiled()


def test_external_data_is_checked_on_the_file_that_is_read(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another user replaces the file by a link out of the folder, after the check and before it is read."""
    secret = tmp_path.parent / f"{tmp_path.name}.secret"
    secret.write_bytes(np.float32([7, 7]).tobytes())

    contents = []

    def swapped(path: str, shown: str | None = None) -> memoryview:
        if Path(shown or path).name == "w.bin":
            (tmp_path / "w.bin").unlink()
            (tmp_path / "w.bin").symlink_to(secret)
        contents.append(bytes(read_buffer(path, shown)))
        return memoryview(contents[-1])

    monkeypatch.setattr("relvm.frontend.onnx_bytes.read_buffer", swapped)
    with pytest.raises(RelvmFormatError, match=r"external data must be a file in the model's folder, got 'w.bin'"):
        relvm.load_model(model, threads=1)
    assert np.float32([10, 20]).tobytes() in contents and secret.read_bytes() not in contents


@pytest.mark.parametrize("target", ["inner/w.bin", "{folder}/inner/w.bin"])
def test_links_inside_the_folder_are_followed(model: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "w.bin").rename(tmp_path / "inner" / "w.bin")
    (tmp_path / "w.bin").symlink_to(target.format(folder=tmp_path))
    assert run(model) == [111, 222]
