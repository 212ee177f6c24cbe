"""Tensors that share memory, and operators that change them in place.

A program can contain operators such as `add_`, and views such as `select`, if it was not functionalized.  The elements
of a storage are those of its base tensor.  A view is computed from the base again after the base has changed.
"""

from __future__ import annotations

from collections.abc import Callable

import relvm.ops as ops
from relvm.data_classes import dataclass
from relvm.errors import RelvmUnsupportedError
from relvm.frontend.torch.context import ImportContext
from relvm.ir.expr import Expr, Shape
from relvm.ir.symbolic import product

View = Callable[[Expr], Expr]


@dataclass
class Storage:
    """Memory that tensors share.

    base: the tensor that covers the memory.
    version: the number of changes so far.
    group: this storage and all others that may be the same memory, depending on strides.
    names: the names of the tensors with this storage.
    """

    base: Expr
    version: int
    group: list[Storage]
    names: list[str]

    def may_share(self, other: Storage) -> None:
        """Record that this storage and `other` may be the same memory.  Merge the groups of both storages."""
        if other.group is self.group:
            return
        self.group += other.group
        for each in self.group:
            each.group = self.group


@dataclass
class TensorValue:
    """A tensor of the program.

    storage: the memory of the tensor.
    views: the operators that compute the tensor from the base of the storage.
    value: the tensor after `version` changes of the storage.
    """

    storage: Storage
    views: tuple[View, ...]
    value: Expr
    version: int

    def current(self) -> Expr:
        """Return the tensor with all changes so far."""
        if self.version != self.storage.version:
            self.value = self.storage.base
            for view in self.views:
                self.value = view(self.value)
            self.version = self.storage.version
        return self.value


def new_tensor(value: Expr) -> TensorValue:
    """Return a tensor with memory of its own."""
    storage = Storage(value, 0, [], [])
    storage.group.append(storage)
    return TensorValue(storage, (), value, 0)


def view_of(tensor: TensorValue, view: View, value: Expr) -> TensorValue:
    """Return a view of a tensor.   value: the result of applying `view` to the current value of the tensor."""
    return TensorValue(tensor.storage, (*tensor.views, view), value, tensor.storage.version)


def write(importer: ImportContext, tensor: TensorValue, value: Expr) -> None:
    """Replace the elements of a tensor by those of `value`, which has the same type.

    A write to a view scatters `value` into the base tensor, at the flat positions of the view's elements.

    Raises
    ------
    RelvmUnsupportedError
        The shape of the base is not known.
    """
    storage = tensor.storage
    if tensor.views:
        base = storage.base
        shape = base.tensor_type.shape
        if shape is None:
            raise RelvmUnsupportedError("an update in place of a view of a tensor of unknown size is not supported")
        positions: Expr = importer.emit(ops.iota(Shape(shape)))
        for view in tensor.views:
            positions = importer.emit(view(positions))
        count = product(positions.tensor_type.known_shape)
        flat = importer.emit(ops.reshape(base, Shape((product(shape),))))
        rows = importer.emit(ops.reshape(positions, Shape((count,))))
        updates = importer.emit(ops.reshape(value, Shape((count,))))
        changed = importer.emit(ops.scatter_elements(flat, rows, updates, axis=0))
        storage.base = importer.emit(ops.reshape(changed, Shape(shape)))
    else:
        storage.base = value
    storage.version += 1
    tensor.value, tensor.version = value, storage.version
