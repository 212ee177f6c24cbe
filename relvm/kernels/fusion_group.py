"""Fusion groups: sets of operators that share one kernel.  A group generates its kernel."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cached_property

from relvm.data_classes import record
from relvm.errors import RelvmUnsupportedError
from relvm.ir.expr import Constant, Expr, OpCall, Shape, Var
from relvm.ir.loop_ir import Buffer, Let, statements_in
from relvm.ir.symbolic import AnyDim, Atom, Dim, DimOp, DimVar, as_var, dim_var, dim_vars, evaluate_with
from relvm.ir.types import TensorType, TupleType, Type
from relvm.kernels.empty_loops import skip_empty_loops
from relvm.kernels.epilogue import Epilogue, make_epilogue
from relvm.kernels.fused_expr import (
    BufferLoad,
    FusedExpr,
    FusedExprBuilder,
    GatherLoad,
    NotFusable,
    ReduceExpr,
    post_order,
)
from relvm.kernels.kernel import Kernel, Provenance
from relvm.kernels.kernel_builder import KernelBuilder
from relvm.kernels.loop_nest import overwrites_before_reading, recomputes_costly_value, write_nest
from relvm.kernels.lowering_rules import Contraction, CustomKernel, GatherKernel, IndexExpr, IndexExprs, LoopAxis
from relvm.kernels.updates import updated_input
from relvm.quoting import c_identifier


@record
class Group:
    """A fusion group: operators that one kernel computes.

    members: a dict that maps each variable of the group to the operator call that computes it, in program order.
    results: the variables that are used outside the group.
    name: the kernel's name without the dtype suffix.  If it is empty, the names of the operators are used.

    At most one member is a contraction.  All other members have lowering rules that can be expressed as trees
    (relvm/kernels/lowering_rules.py).  The only member of a group can also be a CustomKernel.
    """

    members: Mapping[Var, OpCall]
    results: tuple[Var, ...]
    name: str = ""

    @cached_property
    def args(self) -> tuple[Expr, ...]:
        """The tensors that the kernel reads, in order of first use.

        Scalar constants are omitted, because the code of the kernel contains them.  A contraction or a CustomKernel
        reads all its arguments, so none of these is omitted.
        """
        tensors_used = [arg for call in self.members.values() for arg in call.args if isinstance(arg.type, TensorType)]
        if self.is_opaque:
            return tuple(tensors_used)
        core = self.product
        of_product = () if core is None else core.args
        read = (a for a in tensors_used if a not in self.members and (not _is_number(a) or a in of_product))
        return tuple(dict.fromkeys(read))

    @property
    def origins(self) -> tuple[tuple[str, ...], ...]:
        """The source locations of each operator of the group."""
        return tuple(tuple(dict.fromkeys((*var.origins, *call.origins))) for var, call in self.members.items())

    @cached_property
    def product(self) -> OpCall | None:
        """The contraction (matrix product or convolution) in the group, or None.

        The other members form its epilogue: they are applied to each element of its result before the element is
        stored.

        Raises
        ------
        NotFusable
            The group has several contractions.
        """
        found = [call for call in self.members.values() if isinstance(call.op.lower, Contraction)]
        if len(found) > 1:
            raise NotFusable
        return found[0] if found else None

    @property
    def is_opaque(self) -> bool:
        """Whether the group is a single operator that generates its own loop nest (CustomKernel)."""
        return len(self.members) == 1 and any(isinstance(call.op.lower, CustomKernel) for call in self.members.values())

    @cached_property
    def sizes(self) -> dict[AnyDim, AnyDim]:
        """The kernel's variable for each symbolic dimension of the tensors that the kernel reads or writes, as a dict.

        The keys of the dict are these dimensions.

        Raises
        ------
        RelvmUnsupportedError
            The shape or the dtype of a tensor is unknown.
        """
        found: dict[AnyDim, AnyDim] = {}
        for type_ in (
            *(arg.tensor_type for arg in self.args),
            *(type_ for var in self.results for type_ in tensors(var.type)),
        ):
            if type_.shape is None or type_.dtype is None:
                raise RelvmUnsupportedError(f"cannot build a kernel for a tensor of type {type_}")
            for dim in type_.shape:
                if not isinstance(dim, int) and dim not in found:
                    found[dim] = dim_var(_size_name(dim))
        return found

    def dim(self, dim: AnyDim) -> AnyDim:
        """Convert `dim`, a dimension of a value of the group, to an expression of the kernel's own size variables.

        Raises
        ------
        NotFusable
            The dimension cannot be computed from the dimensions of the tensors that the kernel reads and writes.
        """
        if isinstance(dim, int):
            return dim
        if dim in self.sizes:
            return self.sizes[dim]
        own = self._own_dims
        if _has_operators(dim) or any(var not in own for var in dim_vars(dim)):
            raise NotFusable
        return evaluate_with(dim, own.get)

    @cached_property
    def _own_dims(self) -> dict[DimVar, AnyDim]:
        """The kernel's variable for each dimension variable that is a whole dimension of a tensor."""
        return {var: inner for outer, inner in self.sizes.items() if (var := as_var(outer))}

    @cached_property
    def relations(self) -> tuple[tuple[AnyDim, AnyDim], ...]:
        """The relations between compound dimensions, such as `n * 2`, and other dimensions (see Kernel.relations)."""
        own = self._own_dims
        return tuple(
            (inner, evaluate_with(outer, own.get))
            for outer, inner in self.sizes.items()
            if isinstance(outer, Dim) and as_var(outer) is None and not _has_operators(outer)
            if all(var in own for var in dim_vars(outer))
        )

    def type(self, expr: Expr) -> TensorType:
        """Return the type of a value of the group, with dimensions that are expressions of the kernel's own size
        variables."""
        if expr not in self._types:
            self._types[expr] = self.kernel_type(expr.tensor_type)
        return self._types[expr]

    @cached_property
    def _types(self) -> dict[Expr, TensorType]:
        return {}

    def kernel_type(self, type_: TensorType) -> TensorType:
        if type_.shape is None or type_.dtype is None:
            raise NotFusable
        return TensorType(type_.dtype, tuple(map(self.dim, type_.shape)))

    @cached_property
    def kernel_key(self) -> Hashable:
        """A key of the kernel.  Groups with equal keys have the same kernel."""
        variables = map(as_var, self.sizes.values())
        order: dict[Atom, int] = {var: i for i, var in enumerate(variables) if var is not None}
        position: dict[Expr, int] = {arg: i for i, arg in enumerate(self.args)}
        rows = []
        for var, call in self.members.items():
            operands = tuple(_operand_key(arg, position, self) for arg in call.args)
            rows.append((call.op.name, repr(call.attributes), operands, _type_key(var.type, self, order)))
            position[var] = len(position)
        types = tuple(_type_key(arg.type, self, order) for arg in self.args)
        relations = tuple((_dim_key(size, order), _dim_key(dim, order)) for size, dim in self.relations)
        return types, tuple(rows), tuple(position[var] for var in self.results), relations

    def kernel(self, name: str, *, favour: str = "speed") -> Kernel:
        """Return the kernel of the group.

        favour: the goal of the kernel (see KernelBuilder).

        Raises
        ------
        NotFusable
            The operators cannot share a kernel.
        """
        inputs, outputs = self._buffers()
        used_names = dict.fromkeys((buffer.name for buffer in (*inputs, *outputs)), 1)
        builder = KernelBuilder(names=used_names, favour=favour)
        in_place: tuple[int, ...] = ()
        if self.is_opaque:
            (call,) = self.members.values()
            call.op.lower.function(builder, inputs, outputs, **dict(call.attributes))
        else:
            buffers = dict(zip(self.args, inputs, strict=True))
            tree_builder = FusedExprBuilder(self.members, self.type, buffers)
            root, trees, result = self._trees(tree_builder, outputs)
            builder.values |= {
                out.name: tree_builder.moves.get(tree, ()) for out, (_, tree) in zip(outputs, trees, strict=True)
            }
            self._check_indices(builder, buffers)
            core = self.product
            if result is not None and core is not None:
                own = tuple(buffers[arg] for arg in core.args)
                core.op.lower.function(builder, own, result, **dict(core.attributes))
                body, provenance = skip_empty_loops(builder.finish(), inputs), self._provenance(builder)
                return Kernel(
                    name, inputs, outputs, body, self.comment, provenance=provenance, relations=self.relations
                )
            write_nest(builder, root, trees)
            if len(trees) == 1 and not overwrites_before_reading(root, trees):
                in_place = _overwritable_inputs(inputs, root, *trees[0])
        statements, provenance = builder.finish(), self._provenance(builder)
        return Kernel(
            name,
            inputs,
            outputs,
            skip_empty_loops(statements, inputs),
            self.comment,
            in_place,
            updated_input(statements, inputs, outputs),
            provenance=provenance,
            relations=self.relations,
        )

    def _provenance(self, builder: KernelBuilder) -> Provenance:
        number: dict[Hashable, int] = {var: i for i, var in enumerate(self.members)}
        values = {name: tuple(number[var] for var in of) for name, of in builder.values.items()}
        core = self.product
        own = [i for i, call in enumerate(self.members.values()) if call is core or len(self.members) == 1]
        return Provenance(self.origins, values, tuple(own) or None)

    def _check_indices(self, k: KernelBuilder, buffers: Mapping[Expr, Buffer]) -> None:
        for var, call in self.members.items():
            if isinstance(call.op.lower, GatherKernel):
                x, indices = (buffers[arg] for arg in call.args)
                attributes = dict(call.attributes)
                axis = attributes["axis"] % len(x.shape)
                first = len(k.blocks[-1])
                call.op.lower.check(k, indices, x.shape[axis], axis, attributes["from_end"])
                for statement in statements_in(tuple(k.blocks[-1][first:])):
                    if isinstance(statement, Let):
                        k.values[statement.local.name] = (var,)

    def check_fusable(self) -> None:
        """Check that the operators can share a kernel.  Raise NotFusable otherwise."""
        buffers = {arg: Buffer("x", *_dtype_and_shape(self.type(arg))) for arg in self.args}
        outputs = tuple(Buffer("out", *_dtype_and_shape(self.type(var))) for var in self.results)
        root, trees, result = self._trees(FusedExprBuilder(self.members, self.type, buffers), outputs)
        if result is None and recomputes_costly_value(root, trees):
            raise NotFusable
        core = self.product
        # A product that is computed in parts needs a place for partial sums.
        if result is not None and core is not None and result.partial is None:
            own = tuple(buffers[arg] for arg in core.args)
            core.op.lower.function(KernelBuilder(), own, result, **dict(core.attributes))

    def _trees(
        self, tree_builder: FusedExprBuilder, outputs: tuple[Buffer, ...]
    ) -> tuple[tuple[LoopAxis, ...], list[tuple[BufferLoad, FusedExpr]], Epilogue | None]:
        shape = outputs[0].shape
        root = tuple(LoopAxis(dim) for dim in shape)
        at: IndexExprs = tuple(IndexExpr() if axis.extent == 1 else IndexExpr(((axis, 1),)) for axis in root)
        pairs = []
        for var, out in zip(self.results, outputs, strict=True):
            if out.shape != shape:
                raise NotFusable
            pairs.append((tree_builder.load(out, at, shape), tree_builder.tree(var, at)))
        return root, pairs, self._epilogue(root, pairs, tree_builder)

    def _epilogue(
        self, root: tuple[LoopAxis, ...], pairs: list[tuple[BufferLoad, FusedExpr]], tree_builder: FusedExprBuilder
    ) -> Epilogue | None:
        """Return the epilogue of the group's contraction, or None if the group has no contraction.

        root: the loops over the outputs.
        pairs: for each output, the element that is stored and the tree that computes its value.
        tree_builder: the builder that made the trees.
        """
        if self.product is None:
            return None
        if any(arg in self.members for arg in self.product.args) or tree_builder.core is None:
            raise NotFusable
        if any(isinstance(tree, ReduceExpr) for tree in post_order(tuple(tree for _, tree in pairs))):
            raise NotFusable
        type_ = self.kernel_type(self.product.tensor_type)
        shapes = (self.kernel_type(arg.tensor_type).known_shape for arg in self.product.args)
        axes = self.product.op.lower.axes(*shapes, type_.known_shape, **dict(self.product.attributes))
        return make_epilogue(tree_builder.core, type_.known_dtype, type_.known_shape, axes, root, pairs)

    def _buffers(self) -> tuple[tuple[Buffer, ...], tuple[Buffer, ...]]:
        names: dict[str, int] = {}
        inputs = tuple(
            Buffer(_unique_name(names, name), *_dtype_and_shape(self.type(arg)))
            for arg, name in zip(self.args, self._input_names(), strict=True)
        )
        types = [self.kernel_type(type_) for var in self.results for type_ in tensors(var.type)]
        single = len(types) == 1
        outputs = tuple(
            Buffer("out_" if single else f"out{i}_", *_dtype_and_shape(type_)) for i, type_ in enumerate(types)
        )
        return inputs, outputs

    def _input_names(self) -> list[str]:
        """Return the names of the kernel's inputs in the C code.

        They are the parameter names of the operator if the group is a single operator.  Otherwise they are the names of
        the variables that are arguments, or `constant`.
        """
        if len(self.members) > 1:
            return [c_identifier(getattr(arg, "name", "constant")) for arg in self.args]
        (call,) = self.members.values()
        names: dict[Expr, str] = {}
        listed = []
        for i, arg in enumerate(call.args):
            name = call.op.parameters[i].name if i < len(call.op.parameters) else f"x{i}"
            if isinstance(arg.type, TensorType):
                names.setdefault(arg, name)
                listed.append(name)
        return listed if self.is_opaque else [names[arg] for arg in self.args]

    @property
    def comment(self) -> str:
        """The comment above the kernel in the C source."""
        if len(self.members) == 1:
            ((var, call),) = self.members.items()
            args = ", ".join(str(arg.type) for arg in call.args)
            return f"{call.op}({args}{_attributes(call)}) -> {call.type}"
        lines = []
        for var, call in self.members.items():
            args = ", ".join(arg.name if isinstance(arg, Var) else _short(arg) for arg in call.args)
            lines.append(f"{var.name}: {var.type} = {call.op}({args}{_attributes(call)})")
        return "\n   ".join(lines)

    @property
    def base_name(self) -> str:
        """The name of the kernel, composed of the operators and the dtype of the result, such as add_relu_f32."""
        names = list(dict.fromkeys(call.op.name for call in self.members.values()))
        if len(names) > 4:
            names = [*names[:3], f"and_{len(names) - 3}"]
        return f"{self.name or '_'.join(names)}_{tensors(self.results[0].type)[0].dtype}"


def tensors(type_: Type) -> list[TensorType]:
    """Return the tensor types in a type: the type itself if it is a tensor, or the tensor types in a tuple."""
    match type_:
        case TensorType():
            return [type_]
        case TupleType(fields):
            return [tensor for field in fields for tensor in tensors(field)]
    return []


def _overwritable_inputs(
    inputs: tuple[Buffer, ...], root: tuple[LoopAxis, ...], out: BufferLoad, tree: FusedExpr
) -> tuple[int, ...]:
    """Return the inputs that the output may overwrite, as indices into `inputs`.

    Each element of such an input is read only to compute the output element that replaces it.

    root: the loops over the output.
    out: the element of the output that is stored.
    tree: the tree that computes its value.
    """
    columns = list(root)
    moved: dict[LoopAxis, LoopAxis] = {}
    totals = [part for part in post_order((tree,)) if isinstance(part, ReduceExpr)]
    if totals:
        columns = [axis for axis in root if axis not in totals[0].axes]
    for total in totals:
        if [axis.extent for axis in total.over] == [axis.extent for axis in columns]:
            moved |= dict(zip(total.over, columns, strict=True))
    same: dict[Buffer, bool] = {}
    for leaf in post_order((tree,)):
        if isinstance(leaf, GatherLoad):
            return ()
        if not isinstance(leaf, BufferLoad):
            continue
        strides = {moved.get(axis, axis): stride for axis, stride in leaf.strides.items()}
        starts_at_zero = isinstance(leaf.start, int) and leaf.start == 0
        if not starts_at_zero or any(out.strides.get(axis) != stride for axis, stride in strides.items()):
            return ()  # another view of the same memory might be read after it is written
        same[leaf.buffer] = same.get(leaf.buffer, True) and strides == out.strides
    required = (out.buffer.dtype, out.buffer.shape)
    return tuple(i for i, b in enumerate(inputs) if same.get(b) and (b.dtype, b.shape) == required)


def _is_number(arg: Expr) -> bool:
    return isinstance(arg, Constant) and arg.value.size == 1


def _dtype_and_shape(type_: TensorType) -> tuple:
    return type_.dtype, type_.shape


def _has_operators(dim: Dim) -> bool:
    return any(isinstance(atom, DimOp) for monomial, _ in dim.terms for atom in monomial)


def _operand_key(arg: Expr, position: Mapping[Expr, int], group: Group) -> Hashable:
    if arg in position:
        return position[arg]
    if isinstance(arg, Constant):
        return (str(arg.value.dtype), arg.value.tobytes(), arg.value.shape)
    return "shape" if isinstance(arg, Shape) else type(arg).__name__


def _type_key(type_: Type, group: Group, order: Mapping[Atom, int]) -> Hashable:
    """Return a key of `type_` in which numbers replace the names of the kernel's variables.

    Corresponding values of two groups with the same kernel therefore have equal keys.

    type_: the type of a value of the group.
    order: the number that replaces each of the kernel's variables in the key.
    """
    found = []
    for tensor in tensors(type_):
        dims = tuple(_dim_key(group.dim(dim), order) for dim in tensor.shape or ())
        found.append((tensor.dtype, dims))
    return tuple(found)


def _dim_key(dim: AnyDim, order: Mapping[Atom, int]) -> Hashable:
    """Return a key of an expression of the kernel's variables, in which each variable is replaced by its number."""
    if isinstance(dim, int):
        return dim
    return tuple((tuple(order[var] for var in monomial), n) for monomial, n in dim.terms)


def _size_name(dim: AnyDim) -> str:
    var = as_var(dim)
    return var.name if var and var.name.isidentifier() else "size"


def _unique_name(used_names: dict[str, int], name: str) -> str:
    count = used_names.get(name, 0)
    used_names[name] = count + 1
    return f"{name}{count}_" if count else f"{name}_"


def _short(arg: Expr) -> str:
    if isinstance(arg, Constant) and _is_number(arg):
        return f"{arg.value.item():g}" if arg.value.dtype.kind == "f" else str(arg.value.item())
    return str(arg.type)


def _attributes(call: OpCall) -> str:
    return "".join(f", {name}={value}" for name, value in call.attributes)
