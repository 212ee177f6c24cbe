"""Limits of the reader.  A file that exceeds a limit is rejected with a typed error."""

from __future__ import annotations

MAX_ENTRIES = 1_000_000  # files in an archive
MAX_NAME = 4096  # bytes of the name of a file, and characters of the name of a value
MAX_JSON_BYTES = 1 << 28  # of one file
MAX_DIRECTORY_BYTES = 1 << 28  # of the list of files at the end of an archive
MAX_NODES = 1_000_000  # of all graphs together
MAX_GRAPH_DEPTH = 32  # graphs that are arguments of nodes of other graphs
MAX_RANK = 64
MAX_BYTES = 1 << 40  # of one tensor, and of one decompressed file
MAX_EXPANDED_BYTES = 1 << 30  # of one tensor whose strides use elements of the file several times
MAX_GUARD = 2000  # characters of a condition; longer ones are ignored
MAX_GUARDS = 10_000
MAX_EXPRESSION = 100_000  # characters of the expression of a size
MAX_EXPRESSION_DEPTH = 64
