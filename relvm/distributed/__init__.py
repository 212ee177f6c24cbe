"""Run a function on many batches, on a Dask cluster.  Everything except `Runner` and `Batch` requires the extra
`dask`."""

from relvm.distributed.batch import Batch
from relvm.distributed.map_batches import MappedFile, map_batches, map_files
from relvm.distributed.runner import Runner

__all__ = ["Batch", "MappedFile", "Runner", "map_batches", "map_files"]
