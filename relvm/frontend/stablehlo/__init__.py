"""Import of StableHLO programs: MLIR text and portable artifacts."""

from relvm.frontend.stablehlo.importer import from_stablehlo

__all__ = ["from_stablehlo"]
