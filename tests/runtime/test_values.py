"""Tests of the conversion of arguments and results between Python and a machine."""

from __future__ import annotations

import enum
import gc
import struct
import weakref

import numpy as np
import pytest
from support.assembly_programs import machine_of
from support.modes import WAYS

from relvm import vm
from relvm.bytecode.program import Shape
from relvm.errors import RelvmError, RelvmTypeError, RelvmUnsupportedError
from relvm.frontend.text import parse_module
from relvm.numpy_dtypes import numpy_dtype
from relvm.runtime.closure import Closure
from relvm.runtime.convert import MAX_NESTED
from relvm.runtime.tensor import Tensor
from relvm.tables import DTYPES


@pytest.fixture(scope="module")
def identity():
    return machine_of(results_may_share=True)["identity"]


class Color(enum.IntEnum):
    RED = 3


@pytest.mark.parametrize(
    "value",
    [
        0,
        -1,
        (1 << 63) - 1,
        -(1 << 63),
        1.5,
        -0.0,
        float("inf"),
        True,
        False,
        None,
        "",
        "é\0\N{GRINNING FACE}",
        np.dtype("float32"),
        Shape((2, 0, 3)),
        Shape(),
        (),
        (1, (2.5, (), "a"), None, Shape((1,))),
    ],
    ids=repr,
)
def test_a_value_goes_in_and_comes_out(identity, value) -> None:
    back = identity(value)
    assert back == value and type(back) is type(value)
    assert str(back) == str(value)  # distinguishes -0.0 from 0.0


def test_nan_keeps_its_bits(identity) -> None:
    nan = struct.unpack("<d", struct.pack("<Q", 0x7FF8000000000123))[0]
    assert struct.pack("<d", identity(nan)) == struct.pack("<d", nan)


def test_lists_stay_lists_and_subclasses_become_what_they_derive_from(identity) -> None:
    assert identity([1, [2, (3, [])], []]) == [1, [2, (3, [])], []]
    assert identity(Color.RED) == 3 and type(identity(Color.RED)) is int


@pytest.mark.parametrize("size", [0, 1, 2, 63, 64, 65, 5000])
@pytest.mark.parametrize("inner", [None, (), []])
def test_an_object_that_occurs_several_times_in_a_tuple_stays_one_object(identity, size, inner) -> None:
    """C converts short tuples without tuples and lists, and Python the others."""
    one, other = identity(np.ones(2)), identity(np.zeros(3))
    back = identity((*(one, 7, other, np.dtype("f4"), 2.5) * (size // 5), *[one] * (size % 5), inner))
    assert type(back) is tuple and len(back) == size + 1 and back[-1] == inner
    tensors = [item for item in back if isinstance(item, Tensor)]
    assert {id(item) for item in tensors if item.size == 2} <= {id(back[0])}
    assert len({id(item) for item in tensors}) == (0 if size == 0 else 1 if size < 5 else 2)
    assert [item for item in back[:-1] if not isinstance(item, Tensor)] == [7, np.dtype("f4"), 2.5] * (size // 5)


def test_tuples_nest_deeply(identity) -> None:
    value: tuple = ()
    for _ in range(50_000):
        value = (value,)
    back, depth = identity(value), 0
    while back:
        (back,), depth = back, depth + 1
    assert depth == 50_000


def test_a_list_that_contains_itself_is_refused(identity) -> None:
    value: list = []
    value.append(value)
    with pytest.raises(
        RelvmTypeError, match=f"identity: argument x: tuples and lists may be nested at most {MAX_NESTED} levels"
    ):
        identity(value)


@pytest.mark.parametrize("row", [row for row in DTYPES if row.name != "str"], ids=lambda row: row.name)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,), (2, 0, 3)], ids=str)
def test_arrays_go_through_without_a_copy_if_every_byte_is_valid(identity, row, shape) -> None:
    array = np.arange(np.prod(shape)).astype(numpy_dtype(row.index)).reshape(shape)
    tensor = identity(array)
    assert isinstance(tensor, Tensor)
    assert (tensor.shape, tensor.dtype, tensor.ndim) == (shape, array.dtype, array.ndim)
    back = np.asarray(tensor)
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    is_same = back.__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert is_same == (row.bits >= 8 and row.name != "bool") or not array.size


@pytest.mark.parametrize("row", [row for row in DTYPES if row.bits < 8 or row.name == "bool"], ids=lambda row: row.name)
@pytest.mark.parametrize("pack", [lambda x: x, lambda x: (x,), lambda x: [x]], ids=["tensor", "tuple", "list"])
def test_every_byte_becomes_an_element(identity, row, pack) -> None:
    """The bytes of an .npy file are not checked by NumPy."""
    every = np.arange(256, dtype=np.uint8)
    valid = every != 0 if row.name == "bool" else every & ((1 << row.bits) - 1)
    result = identity(pack(every.view(numpy_dtype(row.index))))
    (tensor,) = result if isinstance(result, tuple | list) else (result,)
    assert np.asarray(tensor).tobytes() == valid.tobytes()
    np.asarray(tensor).view(np.uint8)[...] = every  # the host writes to its view of a result
    assert np.asarray(identity(tensor)).tobytes() == valid.tobytes()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3).T,
        np.arange(6)[::2],
        np.arange(6, dtype=">i4"),
        np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.uint8)[1:].view(np.float64),
        np.frombuffer(memoryview(b"ab")[1:1], np.float32).reshape(0, 3),
        np.broadcast_to(np.float32(2), (2, 2)),
    ],
    ids=["transposed", "strided", "big-endian", "misaligned", "misaligned without elements", "broadcast"],
)
def test_arrays_of_another_layout_are_copied(identity, array) -> None:
    back = np.asarray(identity(array))
    np.testing.assert_array_equal(back, array)
    assert back.dtype == array.dtype.newbyteorder("=")


@pytest.mark.parametrize("scalar", [np.float32(1.5), np.float64(2.5), np.int8(-3), np.bool_(True)], ids=repr)
def test_numpy_scalars_are_tensors_of_rank_0(identity, scalar) -> None:
    tensor = identity(scalar)
    assert (tensor.shape, tensor.dtype, tensor.item()) == ((), scalar.dtype, scalar.item())


@pytest.mark.parametrize("mode", ["bytecode", "compiled"])
def test_numpy_scalars_are_numbers_where_the_parameter_is_one(mode: str) -> None:
    text = "def main(x: f32[n], i: i64, s: i64(m), b: bool, f: f64, t: i64[]) = (i + s, b, f, t)"
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode))
    main, x = machine["main"], np.zeros(2, np.float32)
    given = (x, np.int64(3), np.uint8(4), np.bool_(True), np.float32(0.5), np.int64(7))
    results = [main(*given), main(**dict(zip("xisbft", given, strict=True)))]
    machine.set_input("main", *given)
    machine.invoke_stateful("main")
    results.append(machine.get_outputs("main"))
    machine.clear_input("main")
    for result in results:
        assert result[:3] == (7, True, 0.5) and result[3].item() == 7
    for place, wrong in ((1, np.bool_(True)), (1, np.float32(1)), (3, np.int64(1)), (4, np.int64(1)), (5, 7)):
        with pytest.raises(RelvmTypeError, match=f"main: argument {'xisbft'[place]}"):
            main(*given[:place], wrong, *given[place + 1 :])


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (1 << 63, "64 bits"),
        (1j, "complex"),
        (b"bytes", "bytes"),
        ({1: 2}, "dict"),
        (object, "type"),
        (np.zeros(2, np.complex64), "complex64"),
        (np.zeros(2, np.complex64), "complex64"),
        (np.array([None]), "object"),
        (np.array(["a", 1], object), "must contain only strings, got int"),
        (np.zeros(2, "i4,f4"), "unsupported tensor dtype"),
        (np.dtype("complex64"), "complex64"),
        (Shape((1.5,)), "Shape(1.5)"),
        (Shape((1 << 63,)), "64 bits"),
        ((1, [2, 1j]), "complex"),
    ],
    ids=str,
)
def test_what_a_machine_cannot_hold_is_refused_by_name(identity, value, words) -> None:
    with pytest.raises(RelvmTypeError) as caught:
        identity(value)
    assert str(caught.value).startswith("identity: argument x: ") and words in str(caught.value)


def test_a_refused_argument_releases_those_before_it() -> None:
    machine, array = machine_of(), np.ones(3)
    with pytest.raises(RelvmTypeError, match="pair: argument y"):
        machine["pair"]((array, "text"), (array, [array, 1j]))
    gone = weakref.ref(array)
    del array
    gc.collect()
    assert gone() is None


def test_a_view_keeps_the_bytes_alive(identity) -> None:
    array = np.arange(1000.0)
    gone = weakref.ref(array)
    view = np.asarray(identity(array))[10:20]
    del array
    gc.collect()
    assert gone() is not None
    np.testing.assert_array_equal(view, np.arange(10.0, 20.0))
    del view
    gc.collect()
    assert gone() is None


def test_arguments_are_released_after_the_call() -> None:
    machine, array = machine_of(), np.ones(3)
    gone = weakref.ref(array)
    machine["pair"](array, (array, [array]))
    del array
    gc.collect()
    assert gone() is None


def test_a_result_holds_its_arguments_until_it_goes() -> None:
    machine, array = machine_of(), np.ones(3)
    gone = weakref.ref(array)
    pair = machine["pair"](array, 1)
    closure = machine["closure_over"](array)
    del array
    for holder in ("pair", "closure"):
        gc.collect()
        assert gone() is not None, holder
        if holder == "pair":
            del pair
    del closure
    gc.collect()
    assert gone() is None


def test_writes_are_seen_where_the_bytes_are_shared_and_refused_where_they_are_constant() -> None:
    text = "c0 = tensor f32 (2,) [1.0, 2.0]\nf13 = packed vm.builtin.reshape\nc1 = shape (2, 1)\n"
    text += "f14 = bytecode main() registers 2\n  0: call r0 = vm.builtin.reshape(c0, c1)\n"
    machine = machine_of(text + "  1: call r1 = vm.builtin.make_tuple(r0, c0)\n  2: ret r1\n")
    for tensor in machine["main"]():
        assert not tensor.numpy().flags.writeable
    array, machine = np.zeros(3), machine_of(results_may_share=True)
    machine["identity"](array).numpy()[1] = 5
    assert array[1] == 5
    array.flags.writeable = False
    assert not machine["identity"](array).numpy().flags.writeable


def test_tensors_have_the_manners_of_arrays(identity) -> None:
    tensor = identity(np.arange(3, dtype=np.int32))
    assert len(tensor) == 3
    assert repr(tensor) == "Tensor([0, 1, 2], shape=(3,), dtype=int32)"
    assert np.array_equal(np.array(tensor, dtype=np.float64), [0.0, 1.0, 2.0])
    assert identity(np.array(2.5)).item() == 2.5
    with pytest.raises(ValueError):
        tensor.item()
    with pytest.raises(TypeError):
        len(identity(np.array(1)))


def test_a_tensor_of_this_machine_is_passed_as_it_is_and_another_machines_as_a_view() -> None:
    one, other = machine_of(results_may_share=True), machine_of(results_may_share=True)
    array = np.arange(4.0)
    tensor = one["identity"](array)
    assert one["identity"](tensor).address == tensor.address
    elsewhere = other["identity"](tensor)
    assert elsewhere.address != tensor.address and np.shares_memory(elsewhere.numpy(), array)
    gone = weakref.ref(array)
    del array, tensor, one
    gc.collect()
    assert gone() is not None and elsewhere.numpy()[3] == 3.0
    del elsewhere
    gc.collect()
    assert gone() is None


def test_a_function_of_another_machine_is_refused() -> None:
    one, other = machine_of(), machine_of()
    closure = one["closure_over"](1)
    assert isinstance(closure, Closure)
    with pytest.raises(RelvmTypeError, match="apply: argument f: expected a function of this machine"):
        other["apply"](closure, 2)
    assert one["apply"](closure, 2) == (2, 1)


def test_a_storage_has_no_python_form() -> None:
    text = "c0 = dtype u8\nf13 = bytecode main() registers 1\n"
    machine = machine_of(text + "  0: call r0 = vm.builtin.alloc_storage(ctx, 64, 0, c0)\n  1: ret r0\n")
    with pytest.raises(RelvmUnsupportedError, match="storage"):
        machine["main"]()


def test_every_error_of_a_conversion_is_one_of_relvms(identity) -> None:
    for value in (1 << 80, 1j, np.zeros(1, "M8[s]"), Shape(("a",))):
        with pytest.raises(RelvmError):
            identity(value)


@pytest.mark.parametrize("dtype", [object, None])
def test_a_string_without_a_form_in_utf8_is_refused(dtype: type | None) -> None:
    with pytest.raises(RelvmTypeError, match=r"cannot encode the string .* as UTF-8"):
        machine_of()["identity"](np.array(["a", "\ud800"], dtype))


@pytest.mark.parametrize("mode, target", WAYS)
def test_bools_that_a_host_function_writes_become_elements(mode: str, target: str) -> None:
    """The machine uses the argument of a host function again, in which the function writes bytes other than 0 and 1."""
    text = """
def main(x: f32[n], dirt: i64) => (i32[n], bool[n], bool[n], i64) {
  flags = less(x, const(f32[], 0))
  pair = (flags,)
  number = packed("test.values.write", flags, pair, dirt) : i64
  return (cast(flags, to="i32"), logical_not(flags), flags, number)
}
"""
    kept = []

    def write(flags: vm.Tensor, pair: tuple[vm.Tensor], dirt: int) -> int:
        flags.numpy().view(np.uint8)[1:] = dirt
        pair[0].numpy().view(np.uint8)[0] = dirt  # a copy: only the arguments themselves can be outputs
        kept.extend((flags, pair[0]))
        return dirt

    vm.register_func("test.values.write", write, override=True)
    machine = vm.VirtualMachine(vm.build(parse_module(text), mode, target))
    for dirt in (0, 1, 2, 250):
        number, inverse, flags, _ = machine["main"](np.float32([1, 1, -1]), dirt)
        expected = [0, int(dirt != 0), int(dirt != 0)]
        assert number.tolist() == expected and inverse.tolist() == [not each for each in expected]
        for each in kept:
            each.numpy().view(np.uint8)[...] = 250  # after the call
        assert flags.numpy().view(np.uint8).tolist() == expected
