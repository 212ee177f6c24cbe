"""Running one function on many batches, on a Dask cluster.  Needs the extra `dask`, but for `Runner` and `Batch`."""

from relvm.distributed.batches import Batch
from relvm.distributed.mapping import MappedFile, map_batches, map_files
from relvm.distributed.worker import Runner

__all__ = ["Batch", "MappedFile", "Runner", "map_batches", "map_files"]
