"""Run a function on many batches, on a Dask cluster.  This requires the extra `dask`, except for `Runner` and
`Batch`."""

from relvm.distributed.batch import Batch
from relvm.distributed.map_batches import MappedFile, map_batches, map_files
from relvm.distributed.runner import Runner

__all__ = ["Batch", "MappedFile", "Runner", "map_batches", "map_files"]
