"""Programs of the StableHLO project that relvm does not pass, with the reasons.

tests/frontend/stablehlo_suite.py runs them.  The names are those of the files, without .mlir.
"""

from __future__ import annotations

# Patterns of programs that are refused with RelvmUnsupportedError, as the message must say.
REFUSED: dict[str, str] = {
    r".*": "complex numbers are not supported",
}

# Programs that violate the specification.  They are refused with RelvmFormatError.
INVALID: dict[str, str] = {
    "conv_general_dilated_1d_stride_2_even_dynamic": "two window strides for one spatial axis",
    "conv_general_dilated_1d_stride_2_odd_dynamic": "two window strides for one spatial axis",
}

# Programs whose results differ from the expected numbers, although they are correct.
OTHERWISE: dict[str, str] = {
    "sinh_float32_20_20_chlo": "the allowed difference of 1e-4 is less than a unit in the last place of the results",
}
