"""Guards of loops that a dimension of 0 makes useless."""

from __future__ import annotations

from relvm.codegen.c.kernel import print_kernel
from relvm.ir.dtypes import F32, I64
from relvm.ir.loop_ir import Buffer, Literal, as_scalar
from relvm.ir.symbolic import dim_var
from relvm.kernels.empty_loops import skip_empty_loops
from relvm.kernels.kernel import Kernel
from relvm.kernels.kernel_builder import KernelBuilder

N, M, K = (dim_var(name) for name in "nmk")


def _guards(build, x: Buffer, out: Buffer) -> list[str]:
    """Return the conditions in the C code of a kernel from x to out."""
    k = KernelBuilder()
    build(k, x, out)
    kernel = Kernel("test", (x,), (out,), skip_empty_loops(k.finish(), (x,)), "test")
    lines = (line.strip() for line in print_kernel(kernel, "k").split("\n"))
    return [line[4:-3] for line in lines if line.startswith("if (s") and "status" not in line]


def _rows(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
    with k.loop(N) as row, k.loop(M) as column:
        k.store(out, (row, column), x[row, column])


def test_a_loop_of_loops_runs_if_the_inner_loop_does() -> None:
    assert _guards(_rows, Buffer("x_", F32, (N, M)), Buffer("out_", F32, (N, M))) == ["s1_m > 0"]


def test_a_loop_whose_own_dimension_decides_has_no_guard() -> None:
    def build(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
        with k.loop(N) as row, k.loop(3) as column:
            k.store(out, (row, column), x[row, column])

    assert _guards(build, Buffer("x_", F32, (N, 3)), Buffer("out_", F32, (N, 3))) == []


def test_an_output_of_each_row_is_written() -> None:
    def build(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
        with k.loop(N) as row:
            total = k.variable("total", Literal(0.0, F32))
            with k.loop(M) as column:
                k.assign(total, total + x[row, column])
            k.store(out, (row,), total)

    assert _guards(build, Buffer("x_", F32, (N, M)), Buffer("out_", F32, (N,))) == []


def test_a_failure_is_an_effect_where_the_elements_exist() -> None:
    def build(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
        with k.loop(N) as row, k.loop(M) as column:
            element = k.let("element", x[row, column])
            k.fail(element < 0, "INDEX_ERROR", "%lld is below 0", element)
        with k.loop(N) as row, k.loop(K) as column:
            k.store(out, (row, column), 1.0)

    guards = _guards(build, Buffer("x_", I64, (N, M)), Buffer("out_", F32, (N, K)))
    assert guards == ["s1_m > 0", "s2_k > 0"]


def test_a_local_array_matters_only_for_an_output() -> None:
    def build(k: KernelBuilder, x: Buffer, out: Buffer) -> None:
        kept = k.allocate("kept", F32, (4,))
        with k.loop(N) as row:
            with k.loop(4, name="l") as lane:
                k.store(kept, (lane,), as_scalar(0.0, F32))
            with k.loop(M) as column:
                k.store(out, (row, column), kept[1])

    assert _guards(build, Buffer("x_", F32, (N, M)), Buffer("out_", F32, (N, M))) == ["s1_m > 0"]
