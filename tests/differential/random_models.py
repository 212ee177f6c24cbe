"""Small random ONNX models with symbolic sizes on all axes, and inputs of unusual sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from frontend.onnx_models import make_model, onnx
from onnx import helper

OPSET = 17
SIZES = (0, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 8)
SPECIAL_FLOATS = (np.nan, np.inf, -np.inf, -0.0, 0.0, 1e-40, -1e-40, 3.4e38, 1.0)
MAX_ELEMENTS = 4096

Shape = tuple[int, ...]


@dataclass
class Sketch:
    """A model under construction: nodes, constants, and the value of each name for one set of inputs."""

    random: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    inputs: dict[str, tuple[str, ...]] = field(default_factory=dict)  # the symbol of each axis, by input name
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    dtypes: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, int] = field(default_factory=dict)  # sizes of the symbols that the model contains as numbers

    def number(self, low: int, high: int) -> int:
        """Draw an integer from low to high, both included."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:
        return choices[self.number(0, len(choices) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) < percent

    def data(self, rank: tuple[int, int] = (1, 5), dtype: str = "float32") -> str | None:
        """Choose a value with the given dtype and a rank in the given range.

        Return its name, or None if there is none.  Later values are chosen more often.
        """
        fits = [n for n, a in self.arrays.items() if a.dtype == dtype and rank[0] <= a.ndim <= rank[1]]
        return fits[max(self.number(0, len(fits) - 1), self.number(0, len(fits) - 1))] if fits else None

    def shape(self, name: str) -> Shape:
        return self.arrays[name].shape

    def axis(self, name: str) -> int:
        rank = self.arrays[name].ndim
        return self.number(-rank, rank - 1)

    def constant(self, value: Any, dtype: Any = np.int64) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(value, dtype)
        return name

    def node(self, op: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> list[str]:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names

    def size(self, name: str, axis: int) -> str:
        """Add nodes Shape and Gather that compute the size of an axis as a tensor of one element."""
        (shape,) = self.node("Shape", [name])
        (size,) = self.node("Gather", [shape, self.constant([axis])], axis=0)
        return size

    def changed_size(self, size: str) -> str:
        """Add up to two arithmetic operations on a size, as exporters write them."""
        for _ in range(self.number(0, 2)):
            op, number = self.one_of(
                ("Add", self.number(-3, 3)), ("Sub", self.number(0, 4)), ("Mul", self.one_of(1, 2, 3, -1)),
                ("Div", self.one_of(1, 2, 3, 4)), ("Max", self.number(0, 3)), ("Min", self.number(1, 6)),
            )  # fmt: skip
            (size,) = self.node(op, [size, self.constant([number])])
        return size


def unary(s: Sketch) -> bool:
    x = s.data((0, 5))
    s.node(s.one_of("Relu", "Neg", "Abs", "Sigmoid", "Tanh", "Exp", "Sqrt", "Floor", "Identity", "Erf", "Sign"), [x])
    return True


def binary(s: Sketch) -> bool:
    s.node(s.one_of("Add", "Sub", "Mul", "Div", "Max", "Min"), [s.data((0, 5)), s.data((0, 5))])
    return True


def binary_with_constant(s: Sketch) -> bool:
    x = s.data((0, 5))
    shape = [n if s.chance(60) else 1 for n in s.shape(x)][s.number(0, s.arrays[x].ndim) :]
    s.node(s.one_of("Add", "Mul", "Sub"), [x, s.constant(s.random.uniform(-2, 2, shape), np.float32)])
    return True


def matmul(s: Sketch) -> bool:
    x = s.data((1, 4))
    if s.chance(50):
        s.node("MatMul", [x, s.data((1, 4))])
    else:
        w = s.random.uniform(-1, 1, (s.shape(x)[-1], s.number(1, 4)))
        s.node("MatMul", [x, s.constant(w, np.float32)])
    return True


def gemm(s: Sketch) -> bool:
    a, b = s.data((2, 2)), s.data((2, 2))
    if a is None:
        return False
    inputs = [a, b, s.data((0, 2))] if s.chance(50) else [a, b]
    s.node("Gemm", [i for i in inputs if i], transA=s.number(0, 1), transB=s.number(0, 1))
    return True


def transpose(s: Sketch) -> bool:
    x = s.data()
    s.node("Transpose", [x], perm=[int(a) for a in s.random.permutation(s.arrays[x].ndim)])
    return True


def reshape(s: Sketch) -> bool:
    x = s.data()
    sizes = list(s.shape(x))
    count = int(np.prod(sizes))
    wanted: list[int] = []
    for _ in range(s.number(0, 2)):
        divisors = [n for n in range(1, 9) if count and count % n == 0] or [1]
        wanted.append(s.one_of(*divisors))
        count //= wanted[-1]
    wanted.insert(s.number(0, len(wanted)), s.one_of(-1, count, 0 if wanted else -1))
    s.node("Reshape", [x, s.constant(wanted)], **({"allowzero": 1} if s.chance(10) else {}))
    return True


def reshape_by_shape(s: Sketch) -> bool:
    x, y = s.data(), s.data()
    parts = [s.changed_size(s.size(s.one_of(x, x, y), 0)) for _ in range(s.number(1, 2))]
    parts.insert(s.number(0, len(parts)), s.constant([s.one_of(-1, -1, 1, 2, s.shape(x)[-1])]))
    (shape,) = s.node("Concat", parts, axis=0)
    s.node("Reshape", [x, shape])
    return True


def reshape_like(s: Sketch) -> bool:
    x, y = s.data(), s.data()
    (shape,) = s.node("Shape", [y])
    s.node(s.one_of("Reshape", "Expand"), [x, shape])
    return True


def expand(s: Sketch) -> bool:
    x, y = s.data(), s.data()
    sizes = [s.changed_size(s.size(y, 0)), s.constant([1])]
    (shape,) = s.node("Concat", sizes[:: s.one_of(1, -1)], axis=0)
    s.node("Expand", [x, shape])
    return True


def slices(s: Sketch) -> bool:
    x = s.data()
    bounds = [s.constant([s.one_of(-(2**63), -9, -3, -2, -1, 0, 1, 2, 3, 9, 2**31 - 1, 2**63 - 1)]) for _ in range(2)]
    if s.chance(40):
        bounds[s.number(0, 1)] = s.changed_size(s.size(s.data(), 0))
    s.node("Slice", [x, *bounds, s.constant([s.axis(x)]), s.constant([s.one_of(1, 1, 2, -1, -2, 3)])])
    return True


def slice_of_shape(s: Sketch) -> bool:
    x = s.data((2, 5))
    if x is None:
        return False
    (shape,) = s.node("Shape", [x])
    begin, end = s.one_of(-9, -2, -1, 0, 1, 2, 9), s.one_of(-(2**63), -9, -2, -1, 0, 1, 2, 9)
    (part,) = s.node("Slice", [shape, *(s.constant([n]) for n in (begin, end, 0, s.one_of(1, 2, -1, -2)))])
    (total,) = s.node("Concat", [part, s.constant([1])], axis=0)
    s.node("ConstantOfShape", [total], value=helper.make_tensor("v", onnx.TensorProto.FLOAT, [1], [2.5]))
    return True


def concat(s: Sketch) -> bool:
    x = s.data()
    others = [n for n, a in s.arrays.items() if a.dtype == np.float32 and a.ndim == s.arrays[x].ndim]
    s.node("Concat", [s.one_of(*others) for _ in range(s.number(1, 3))], axis=s.axis(x))
    return True


def split(s: Sketch) -> bool:
    x = s.data()
    axis = s.axis(x)
    size = s.shape(x)[axis]
    if s.chance(50):
        count = s.number(1, 3)
        s.node("Split", [x], outputs=count, axis=axis)
    else:
        first = s.number(0, size)
        s.node("Split", [x, s.constant([first, size - first])], outputs=2, axis=axis)
    return True


def reduce(s: Sketch) -> bool:
    x = s.data()
    op = s.one_of("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL2")
    axes = sorted({s.axis(x) % s.arrays[x].ndim for _ in range(s.number(1, 2))})
    if op == "ReduceSum":
        s.node(op, [x, s.constant(axes)], keepdims=s.number(0, 1))
    else:
        s.node(op, [x], axes=axes, keepdims=s.number(0, 1))
    return True


def along_axis(s: Sketch) -> bool:
    x = s.data()
    s.node(s.one_of("Softmax", "LogSoftmax", "Flatten"), [x], axis=s.axis(x))
    return True


def cumsum(s: Sketch) -> bool:
    x = s.data()
    s.node("CumSum", [x, s.constant(s.axis(x))], exclusive=s.number(0, 1), reverse=s.number(0, 1))
    return True


def argument(s: Sketch) -> bool:
    x = s.data()
    (found,) = s.node(s.one_of("ArgMax", "ArgMin"), [x], axis=s.axis(x), keepdims=s.number(0, 1))
    s.node("Cast", [found], to=1)
    return True


def topk(s: Sketch) -> bool:
    x = s.data()
    axis = s.axis(x)
    k = s.constant([s.number(0, 3)]) if s.chance(60) else s.changed_size(s.size(x, axis))
    s.node("TopK", [x, k], outputs=2, axis=axis, largest=s.number(0, 1))
    return True


def pooled(s: Sketch) -> bool:
    x = s.data((3, 4))
    if x is None:
        return False
    op = s.one_of("MaxPool", "AveragePool", "LpPool", "GlobalAveragePool", "GlobalMaxPool")
    s.node(op, [x], **({} if op.startswith("Global") else _window(s, s.arrays[x].ndim - 2, op)))
    return True


def _window(s: Sketch, rank: int, op: str) -> dict[str, Any]:
    kernel = [s.number(1, 4) for _ in range(rank)]
    found: dict[str, Any] = {"kernel_shape": kernel, "strides": [s.number(1, 3) for _ in range(rank)]}
    if s.chance(20):
        found["auto_pad"] = s.one_of("SAME_UPPER", "SAME_LOWER", "VALID")
    elif s.chance(50):
        found["pads"] = [s.number(0, n - 1) for n in kernel * 2]
    if op in ("MaxPool", "Conv") and s.chance(30):
        found["dilations"] = [s.number(1, 2) for _ in range(rank)]
    if op in ("MaxPool", "AveragePool") and s.chance(30):
        found["ceil_mode"] = 1
    if op == "AveragePool" and s.chance(50):
        found["count_include_pad"] = 1
    return found


def conv(s: Sketch) -> bool:
    x = s.data((3, 4))
    if x is None or not s.shape(x)[1]:
        return False
    channels, rank = s.shape(x)[1], s.arrays[x].ndim - 2
    groups = s.one_of(1, 1, channels)
    window = _window(s, rank, "Conv")
    w = s.random.uniform(-1, 1, (groups * s.number(1, 2), channels // groups, *window["kernel_shape"]))
    s.node("Conv", [x, s.constant(w, np.float32)], group=groups, **window)
    return True


def conv_transpose(s: Sketch) -> bool:
    x = s.data((3, 4))
    if x is None or not s.shape(x)[1]:
        return False
    kernel = [s.number(1, 3) for _ in s.shape(x)[2:]]
    w = s.random.uniform(-1, 1, (s.shape(x)[1], s.number(1, 2), *kernel))
    pads = [s.number(0, 1) for _ in kernel * 2]
    s.node("ConvTranspose", [x, s.constant(w, np.float32)], strides=[s.number(1, 2) for _ in kernel], pads=pads)
    return True


def pad(s: Sketch) -> bool:
    x = s.data()
    mode = s.one_of("constant", "edge", "reflect")
    low = -2 if mode == "constant" else 0
    s.node("Pad", [x, s.constant([s.number(low, 2) for _ in s.shape(x) * 2])], mode=mode)
    return True


def tile(s: Sketch) -> bool:
    x = s.data((1, 4))
    s.node("Tile", [x, s.constant([s.number(0 if s.chance(10) else 1, 2) for _ in s.shape(x)])])
    return True


def where(s: Sketch) -> bool:
    (condition,) = s.node(s.one_of("Less", "Equal", "GreaterOrEqual"), [s.data(), s.data()])
    s.node("Where", [condition, s.data(), s.data()])
    return True


def gather(s: Sketch) -> bool:
    x = s.data()
    axis = s.axis(x)
    size = max(s.shape(x)[axis], 1)
    indices = s.random.integers(-size, size, [s.number(1, 3) for _ in range(s.number(0, 2))])
    s.node("Gather", [x, s.constant(indices)], axis=axis)
    return True


def squeeze(s: Sketch) -> bool:
    x = s.data()
    ones = [axis for axis, size in enumerate(s.shape(x)) if size == 1]
    if ones and s.chance(60):
        s.node("Squeeze", [x, s.constant([s.one_of(*ones)])] if s.chance(70) else [x])
    else:
        s.node("Unsqueeze", [x, s.constant([s.number(0, s.arrays[x].ndim)])])
    return True


def resize(s: Sketch) -> bool:
    x = s.data((4, 4))
    if x is None:
        return False
    how = s.one_of("half_pixel", "asymmetric", "align_corners")
    attributes = {"mode": s.one_of("nearest", "linear"), "coordinate_transformation_mode": how}
    if s.chance(70):
        scales = [1.0, 1.0, s.one_of(0.5, 0.6, 1.3, 2.0, 1.7), s.one_of(0.5, 1.0, 2.0, 2.5)]
        s.node("Resize", [x, "", s.constant(scales, np.float32)], **attributes)
        return True
    (shape,) = s.node("Shape", [x])
    (front,) = s.node("Slice", [shape, s.constant([0]), s.constant([2])])
    (sizes,) = s.node("Concat", [front, s.constant([s.number(1, 5), s.number(1, 5)])], axis=0)
    s.node("Resize", [x, "", "", sizes], **attributes)
    return True


def space_to_depth(s: Sketch) -> bool:
    x = s.data((4, 4))
    if x is None:
        return False
    s.node(s.one_of("SpaceToDepth", "DepthToSpace"), [x], blocksize=2)
    return True


def normalization(s: Sketch) -> bool:
    x = s.data((3, 4))
    if x is None:
        return False
    channels = s.shape(x)[1]
    scale, bias = (s.constant(s.random.uniform(-1, 1, channels), np.float32) for _ in range(2))
    s.node("InstanceNormalization", [x, scale, bias])
    return True


def einsum(s: Sketch) -> bool:
    x, y = s.data((2, 2)), s.data((2, 2))
    if x is None:
        return False
    s.node("Einsum", [x, y], equation=s.one_of("ij,jk->ik", "ij,kj->ik", "ij,ij->i", "ij,kl->ijkl"))
    return True


def prelu(s: Sketch) -> bool:
    s.node("PRelu", [s.data(), s.data()])
    return True


def range_(s: Sketch) -> bool:
    size = s.changed_size(s.size(s.data(), 0))
    (limit,) = s.node("Squeeze", [size, s.constant([0])])
    (numbers,) = s.node("Range", [s.constant(0), limit, s.constant(s.one_of(1, 2))])
    s.node("Cast", [numbers], to=1)
    return True


KINDS: tuple[Callable[[Sketch], bool], ...] = (
    unary, binary, binary, binary_with_constant, matmul, gemm, transpose, reshape, reshape_by_shape,
    reshape_by_shape, reshape_like, expand, slices, slices, slice_of_shape, concat, split, reduce, reduce,
    along_axis, cumsum, argument, topk, pooled, pooled, conv, conv_transpose, pad, tile, where, gather, squeeze,
    resize, space_to_depth, normalization, einsum, prelu, range_,
)  # fmt: skip


@dataclass(frozen=True)
class RandomModel:
    """A model of random nodes.

    inputs: name -> the symbol of each axis.   sizes: the values of the symbols when the model was drawn.   fixed: the
    symbols that the model states as numbers.
    """

    nodes: tuple[onnx.NodeProto, ...]
    constants: dict[str, np.ndarray]
    inputs: dict[str, tuple[str, ...]]
    sizes: dict[str, int]
    fixed: frozenset[str]
    outputs: tuple[str, ...]

    def proto(self, sizes: dict[str, int] | None = None) -> onnx.ModelProto:
        """Return the model with symbolic sizes, or with the given sizes as numbers."""
        fixed = {symbol: self.sizes[symbol] for symbol in self.fixed} | (sizes or {})
        inputs = [(n, np.float32, [fixed.get(d, d) for d in dims]) for n, dims in self.inputs.items()]
        return make_model(self.nodes, inputs, self.outputs, self.constants, OPSET)

    def other_sizes(self, random: np.random.Generator) -> dict[str, int]:
        """Draw sizes for the symbols.  Some of them differ from those that the model was drawn with."""
        found = dict(self.sizes)
        for symbol in found:
            if symbol not in self.fixed and random.integers(0, 2):
                found[symbol] = int(random.choice((0, 1, 2, 3, found[symbol] + 1, 2 * found[symbol], 9)))
        return found

    def arrays(self, sizes: dict[str, int], random: np.random.Generator) -> list[np.ndarray]:
        """Draw an array for each input.  Some arrays contain special numbers."""
        made = []
        for dims in self.inputs.values():
            array = np.asarray(random.uniform(-3, 3, [sizes[d] for d in dims])).round(2).astype(np.float32)
            if random.integers(0, 5) == 0 and array.size:
                at = random.integers(0, array.size, max(1, array.size // 4))
                array.reshape(-1)[at] = random.choice(SPECIAL_FLOATS, at.size).astype(np.float32)
            made.append(array)
        return made


def draw(seed: int, run: Callable[[onnx.ModelProto, list[np.ndarray]], list[np.ndarray]]) -> RandomModel:
    """Draw a random model.

    Parameters
    ----------
    seed
        The seed of all random choices.
    run
        A function that returns the outputs of a model.  A node for which it raises an error is usually left out.
    """
    s = Sketch(np.random.default_rng(seed))
    sizes: dict[str, int] = {}
    for i in range(s.number(1, 3)):
        dims = []
        for _ in range(s.one_of(1, 2, 2, 3, 3, 4, 4)):
            if sizes and s.chance(35):
                dims.append(s.one_of(*sizes))
                continue
            dims.append(f"n{len(sizes)}")
            sizes[dims[-1]] = s.one_of(*SIZES)
        s.inputs[f"x{i}"] = tuple(dims)
        s.arrays[f"x{i}"] = s.random.uniform(-3, 3, [sizes[d] for d in dims]).astype(np.float32)
    fixed = frozenset(symbol for symbol in sizes if s.chance(25))
    outputs: list[str] = []
    wanted = s.number(1, 5)
    for _ in range(3 * wanted):
        nodes, constants = len(s.nodes), dict(s.constants)
        if not s.one_of(*KINDS)(s):
            del s.nodes[nodes:]
            continue
        model = RandomModel(tuple(s.nodes), s.constants, s.inputs, sizes, fixed, tuple(s.nodes[-1].output))
        try:
            results = run(model.proto(sizes), [s.arrays[name] for name in s.inputs])
        except Exception:  # ONNX Runtime rejects the node: usually drop it, sometimes keep it to test the error
            if s.chance(8):
                outputs += s.nodes[-1].output
                break
            del s.nodes[nodes:]
            s.constants = constants
            continue
        if any(result.size > MAX_ELEMENTS for result in results):
            del s.nodes[nodes:]
            s.constants = constants
            continue
        s.arrays.update(zip(s.nodes[-1].output, results, strict=True))
        outputs += s.nodes[-1].output
        if len(outputs) >= wanted:
            break
    used = {name for node in s.nodes for name in node.input}
    kept = tuple(name for name in outputs if name not in used or s.chance(15))
    return RandomModel(tuple(s.nodes), s.constants, s.inputs, sizes, fixed, kept or ("x0",))
