"""Tests of windows and Fourier transforms, compared with ONNX Runtime and NumPy: symbolic sizes, lengths, errors."""

from __future__ import annotations

import numpy as np
import pytest
from frontend.onnx_answers import against_onnxruntime
from frontend.onnx_models import parse_model
from support.modes import machines

from relvm import vm
from relvm.errors import RelvmError, RelvmShapeError
from relvm.frontend.onnx import from_onnx

RANDOM = np.random.default_rng(4)


def numbers(*shape: int) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(np.float32)


FRAMES = parse_model("""
    g (float[b, n, 1] x, float[8] given) => (p, q, r)
    <int64 step = {3}, int64 size = {8}>
    {
      p = STFT(x, step, given)
      hann = HannWindow(size)
      q = STFT<onesided = 0>(x, step, hann, size)
      r = STFT(x, step, , size)
    }""")


def test_frames_of_symbolic_signals() -> None:
    for b, n in ((2, 20), (1, 8)):
        against_onnxruntime(FRAMES, numbers(b, n, 1), numbers(8))


@pytest.mark.parametrize("sizes", ["2, 20", "b, n"])
def test_frames_of_signals_without_a_last_axis(sizes: str) -> None:
    known = "<int64 step = {3}, int64 size = {8}>"
    for inputs, constants in (("", known), (", int64 step, int64 size", "")):
        model = parse_model(f"""
            g (float[{sizes}] x, float[8] given{inputs}) => (p, q)
            {constants} {{ p = STFT(x, step, given)  q = STFT<onesided = 0>(x, step, , size) }}""")
        integers = (np.array(3), np.array(8)) if inputs else ()
        against_onnxruntime(model, numbers(2, 20), numbers(8), *integers)


LONG = parse_model(
    """
    g (float[b, 300, 3, 1] x, double[300, 2] z) => (p, q, r, s, t, u, v)
    <int64 less = {270}, int64 more = {1031}, int64 first = {0}, int64 second = {1}>
    {
      p = DFT(x, more, second)
      q = DFT<onesided = 1>(x, less, second)
      r = DFT(z, , first)
      s = DFT<inverse = 1>(z, less, first)
      t = DFT<inverse = 1, onesided = 1>(z, , first)
      u = DFT<inverse = 1, onesided = 1>(z, more, first)
      v = DFT<inverse = 1, onesided = 1>(z, less, first)
    }""",
    20,
)


def test_long_transforms() -> None:
    x, z = numbers(2, 300, 3, 1), numbers(300, 2).astype(np.float64)
    spectrum = z[..., 0] + 1j * z[..., 1]
    expected = (
        pairs(np.fft.fft(x[..., 0], n=1031, axis=1)),
        pairs(np.fft.rfft(x[..., 0], n=270, axis=1)),
        pairs(np.fft.fft(spectrum)),
        pairs(np.fft.ifft(spectrum, n=270)),
        np.fft.irfft(spectrum)[:, None],
        np.fft.irfft(spectrum, n=1031)[:, None],
        np.fft.irfft(spectrum, n=270)[:, None],
    )
    machine = vm.VirtualMachine(vm.build(from_onnx(LONG), "bytecode", "bytecode"))
    for found, value in zip(machine["main"](x, z), expected, strict=True):
        tolerance = 1e-6 if found.numpy().dtype == np.float32 else 1e-13
        np.testing.assert_allclose(found.numpy(), value, rtol=0, atol=tolerance * np.abs(value).max())


def test_windows_of_symbolic_and_computed_size() -> None:
    model = parse_model("""
        g (float[n] x, int64 k) => (p, q, r)
        {
          shape = Shape(x)
          n = Squeeze(shape)
          p = BlackmanWindow(n)
          q = HammingWindow<periodic = 0>(k)
          r = HannWindow<periodic = 0, output_datatype = 11>(n)
        }""")
    against_onnxruntime(model, numbers(7), np.array(5))
    against_onnxruntime(model, numbers(2), np.array(9))


LENGTHS = parse_model(
    """
    g (float[b, 6, 3, 1] x, double[6, 2] z) => (p, q, r, s, t, u)
    <int64 less = {4}, int64 more = {9}, int64 first = {0}, int64 second = {1}>
    {
      p = DFT(x, more, second)
      q = DFT<onesided = 1>(x, less, second)
      r = DFT(x)
      s = DFT<inverse = 1>(z, less, first)
      t = DFT<inverse = 1, onesided = 1>(z, , first)
      u = DFT<inverse = 1, onesided = 1>(z, more, first)
    }""",
    20,
)


def pairs(values: np.ndarray) -> np.ndarray:
    return np.stack((values.real, values.imag), axis=-1)


def test_transforms_of_other_lengths() -> None:
    x, z = numbers(2, 6, 3, 1), numbers(6, 2).astype(np.float64)
    wave = z[:, 0] + 1j * z[:, 1]
    wanted = [
        *(pairs(np.fft.fft(x[..., 0], length, axis)) for length, axis in ((9, 1), (3, 2))),
        pairs(np.fft.ifft(wave, 4)),
        *(np.fft.irfft(wave, length)[:, None] for length in (10, 9)),
    ]
    wanted.insert(1, pairs(np.fft.rfft(x[..., 0], 4, 1)))
    for machine in machines(from_onnx(LENGTHS)).values():
        for got, want in zip(machine["main"](x, z), wanted, strict=True):
            assert got.numpy().shape == want.shape
            np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)


AT_RUN_TIME = parse_model(
    """
    g (float[b, n, k, 1] x, double[b, n, k, 2] z, int64 length, int64 axis) => (p, q, r, s)
    {
      p = DFT<onesided = 1>(x, length, axis)
      q = DFT(z, length, axis)
      r = DFT<inverse = 1>(z, , axis)
      s = DFT<inverse = 1, onesided = 1>(z, length, axis)
    }""",
    20,
)


def test_transforms_whose_axis_and_length_the_machine_knows() -> None:
    x, z = numbers(2, 6, 5, 1), numbers(2, 6, 5, 2).astype(np.float64)
    wave = z[..., 0] + 1j * z[..., 1]
    for machine in machines(from_onnx(AT_RUN_TIME)).values():
        for length, axis in ((6, 1), (4, -3), (9, 2), (3, 0)):
            at = axis % 4
            wanted = (
                pairs(np.fft.rfft(x[..., 0], length, at)),
                pairs(np.fft.fft(wave, length, at)),
                pairs(np.fft.ifft(wave, None, at)),
                np.fft.irfft(wave, length, at)[..., None],
            )
            for got, want in zip(machine["main"](x, z, np.array(length), np.array(axis)), wanted, strict=True):
                assert got.numpy().shape == want.shape
                np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
        for length, axis, message in (
            (6, 3, "transforms along the last axis"),
            (6, 4, "axes outside"),
            (0, 1, "transform lengths outside"),
        ):
            with pytest.raises(RelvmShapeError, match=message):
                machine["main"](x, z, np.array(length), np.array(axis))


def test_frames_of_which_the_machine_knows_all() -> None:
    model = parse_model("""
        g (float[b, n, 1] x, int64 step, int64 size) => (p, q)
        {
          hann = HannWindow(size)
          p = STFT(x, step, hann, size)
          q = STFT<onesided = 0>(x, step, , size)
        }""")
    against_onnxruntime(model, numbers(2, 20, 1), np.array(3), np.array(8))
    for machine in machines(from_onnx(model)).values():
        for step, size, message in ((0, 8, "frame steps below 1"), (1, 21, "frames longer than the signal")):
            with pytest.raises(RelvmShapeError, match=message):
                machine["main"](numbers(2, 20, 1), np.array(step), np.array(size))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "g (float[20000000, 1] x) => (y) <int64 a = {0}> { y = DFT(x, , a) }",
            "20000000 elements is not supported: expected 1 to 16777216",
        ),
        ("g (float[5, 3] x) => (y) <int64 a = {0}> { y = DFT(x, , a) }", "expected a last dimension of 1 or 2"),
        ("g (float[5, 2] x) => (y) <int64 a = {1}> { y = DFT(x, , a) }", "axis 1 is invalid for a signal of rank 2"),
        (
            "g (float[5, 2] x) => (y) <int64 a = {0}> { y = DFT<onesided = 1>(x, , a) }",
            "onesided requires a real signal",
        ),
        (
            "g (float[5, 1] x) => (y) <int64 a = {0}> { y = DFT<onesided = 1, inverse = 1>(x, , a) }",
            "requires a complex input, got a real one",
        ),
        (
            "g (float[n, 1] x) => (y) <int64 a = {0}> { y = DFT<onesided = 1, inverse = 1>(x, , a) }",
            "requires a complex input, got a real one",
        ),
        (
            "g (float[n, 2] x) => (y) <int64 a = {0}> { y = DFT<onesided = 1>(x, , a) }",
            "onesided requires a real signal",
        ),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(RelvmError, match=message):
        from_onnx(parse_model(text, 20))
