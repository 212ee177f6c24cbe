"""Limits of the readers.  A file that exceeds a limit is rejected with a typed error."""

from __future__ import annotations

MAX_DEPTH = 64  # nested regions, types and attributes
MAX_OPERATIONS = 1_000_000
MAX_VALUES = 4_000_000  # results of operations, and arguments of blocks
MAX_RANK = 64
MAX_ELEMENTS = 1 << 40  # of one tensor
MAX_STRING = 1 << 20  # characters of a name or a string, except the elements of a tensor
