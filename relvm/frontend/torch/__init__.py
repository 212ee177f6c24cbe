"""Import of PyTorch programs: `.pt2` files of torch.export, without PyTorch, and programs in memory."""

from relvm.frontend.torch.importer import from_pt2
from relvm.frontend.torch.traced import from_torch

__all__ = ["from_pt2", "from_torch"]
