# %% [markdown]
# # ONNX models: import, comparison and profiling
#
# This notebook creates a small network and saves it as an ONNX file. It then imports the file, compares the results
# with ONNX Runtime, and measures the performance.
#
# At the end of the notebook you can import an ONNX model, verify its results against ONNX Runtime, and measure each
# of its kernels.

# %%
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

rng = np.random.default_rng(0)
weights = {
    "w1": rng.standard_normal((64, 128)).astype(np.float32) / 8,
    "b1": rng.standard_normal(128).astype(np.float32),
    "w2": rng.standard_normal((128, 10)).astype(np.float32) / 8,
}
nodes = [
    helper.make_node("Gemm", ["x", "w1", "b1"], ["hidden"]),
    helper.make_node("Relu", ["hidden"], ["active"]),
    helper.make_node("MatMul", ["active", "w2"], ["logits"]),
    helper.make_node("Softmax", ["logits"], ["scores"], axis=-1),
]
graph = helper.make_graph(
    nodes,
    "classifier",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 64])],
    [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 10])],
    [numpy_helper.from_array(array, name) for name, array in weights.items()],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, "classifier.onnx")

# %% [markdown]
# The graph becomes a function, `main`. The size `batch` remains symbolic. To fix it, use
# `from_onnx(path, dims={"batch": 8})`. The figure shows the data flow of the function. Each box is a kernel, and a
# click on it shows the operators in it.

# %%
from relvm.explore import browse_dataflow
from relvm.frontend.onnx import from_onnx
from relvm.ir.printer import print_module

module = from_onnx("classifier.onnx")
print(print_module(module, elide_constants=True))
browse_dataflow(module)

# %%
from relvm import vm

x = rng.standard_normal((8, 64)).astype(np.float32)
machine = vm.VirtualMachine(vm.build(module, exec_mode="compiled"))
scores = machine["main"](x).numpy()
np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-5)
scores.argmax(axis=1)

# %% [markdown]
# `compare` runs the model in both modes, in the reference interpreter and in ONNX Runtime, and compares every value.
# If values differ, the attribute `first` of the result is the row of the first such value.

# %%
from relvm.explore import compare

compared = compare("classifier.onnx", x)
assert compared.agrees
print(compared.format(all_rows=True))

# %% [markdown]
# A profile shows the time of each kernel. It also compares the operations and bytes per second with the measured peak
# rates of this computer. The kernel of the matrix product also computes the bias and the relu, which are fused into
# it.
#
# The data of such a small model are in the caches of the processor, so a kernel can exceed the peak rate of the
# memory. The overhead of the call is a visible part of the time of a kernel.

# %% tags=["remove-output"]
from relvm.explore import draw_roofline, format_profile

profile = machine.profile("main", x)
print(format_profile(profile))
assert not any(row.name.startswith("relu") for row in profile.rows)
assert max(row.operations or 0 for row in profile.rows) == 8 * (
    2 * 64 * 128 + 2 * 128
)  # product, bias, relu
draw_roofline(profile)

# %% [markdown]
# The following cell measures the time of a call without the overhead of Python:

# %% tags=["remove-output"]
timing = machine.time_evaluator("main", number=20, repeat=5)(x)
print(timing)
assert 0 < timing.min <= timing.median

# %% [markdown]
# **Exercise.** Import the model with the size 8 for `batch`. Which type does `scores` have?

# %% tags=["solution"]
fixed = from_onnx("classifier.onnx", dims={"batch": 8})
print(print_module(fixed, elide_constants=True))
assert "scores: f32[8, 10]" in print_module(fixed, elide_constants=True)
assert np.array_equal(vm.VirtualMachine(vm.build(fixed))["main"](x).numpy(), scores)
