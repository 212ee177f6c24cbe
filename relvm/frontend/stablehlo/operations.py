"""The operations of StableHLO, CHLO and check: how the text form prints them, and how readers normalize attributes.

FORMATS contains a row for each operation whose text form has more than operands, attributes and types.  A format is a
sequence of items:

    operands            a list of operands, which may be empty
    word or mark        the word or mark itself
    NAME:KIND           the attribute NAME, printed as KIND, one of the methods `_attribute_KIND` of the text reader
    {? item ... ?}      items that may be missing; the first one decides

Every operation can also be printed in MLIR's generic form, which needs no table.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relvm.frontend.stablehlo.program import Attributes, Elements

FORMATS = {
    "broadcast": "operands , sizes = broadcast_sizes:ints",
    "broadcast_in_dim": "operands , dims = broadcast_dimensions:ints",
    "compare": "comparison_direction:word , operands {? , compare_type:word ?}",
    "cholesky": "operands {? , lower = lower:attribute ?}",
    "composite": "name:string operands",
    "concatenate": "operands , dim = dimension:int",
    "convolution": "( operands ) dim_numbers = dimension_numbers:convolution , window = window:window",
    "custom_call": "call_target_name:symbol ( operands )",
    "dot": "operands {? , precision = precision_config:words ?}",
    "dot_general": "operands {? , batching_dims = dot_batching:pair ?} {? , contracting_dims = dot_contracting:pair ?}"
    " {? , precision = precision_config:words ?} {? , algorithm = algorithm:structure ?}",
    "dynamic_broadcast_in_dim": "operands , dims = broadcast_dimensions:ints",
    "dynamic_iota": "operands , dim = iota_dimension:int",
    "dynamic_slice": "operands , sizes = slice_sizes:ints",
    "einsum": "operands , config = einsum_config:string",
    "fft": "operands , type = fft_type:word , length = fft_length:ints",
    "get_dimension_size": "operands , dim = dimension:int",
    "get_tuple_element": "operands [ index:int ]",
    "iota": "dim = iota_dimension:int",
    "pad": "operands , low = edge_padding_low:ints , high = edge_padding_high:ints , interior = interior_padding:ints",
    "reduce_precision": "operands , format = reduce_format:float_format",
    "reverse": "operands , dims = dimensions:ints",
    "rng": "operands , distribution = rng_distribution:word",
    "rng_bit_generator": "operands , algorithm = rng_algorithm:word",
    "set_dimension_size": "operands , dim = dimension:int",
    "slice": "operands slice_ranges:ranges",
    "top_k": "( operands , k = k:int )",
    "transpose": "operands , dims = permutation:ints",
    "unary_einsum": "operands , config = einsum_config:string",
    "call": "callee:symbol ( operands )",
    **dict.fromkeys(("eq", "almost_eq", "expect_eq_const", "expect_almost_eq_const"), "operands , value:attribute"),
    "expect_almost_eq": "operands {? , tolerance = tolerance:number ?}",
    "expect_close": "operands {? , max_ulp_difference = max_ulp_difference:int ?}"
    " {? , min_ulp_difference = min_ulp_difference:int ?}",
}

_CONVOLUTION = (
    *("batch_group_count", "feature_group_count", "lhs_dilation", "precision_config", "rhs_dilation"),
    *("input_batch_dimension", "input_feature_dimension", "input_spatial_dimensions"),
    *("kernel_input_feature_dimension", "kernel_output_feature_dimension", "kernel_spatial_dimensions"),
    *("output_batch_dimension", "output_feature_dimension", "output_spatial_dimensions"),
    *("window_reversal", "window_strides"),
)
_DOT = (
    *("lhs_batching_dimensions", "lhs_contracting_dimensions", "precision_config"),
    *("rhs_batching_dimensions", "rhs_contracting_dimensions"),
)
_DOT_ALGORITHM = (
    *("accumulation_type", "allow_imprecise_accumulation", "lhs_component_count", "lhs_precision_type"),
    *("num_primitive_operations", "rhs_component_count", "rhs_precision_type"),
)
_GATHER = ("collapsed_slice_dims", "index_vector_dim", "indices_are_sorted", "offset_dims", "start_index_map")
_GATHER_BATCHES = ("operand_batching_dims", "start_indices_batching_dims")
_SCATTER = (
    *("index_vector_dim", "indices_are_sorted", "inserted_window_dims", "scatter_dims_to_operand_dims"),
    *("unique_indices", "update_window_dims"),
)
_CUSTOM_CALL = (
    *("api_version", "backend_config", "call_target_name", "called_computations", "has_side_effect"),
    *("operand_layouts", "output_operand_aliases", "result_layouts"),
)
# The attributes of operations of the versioned dialect that a portable artifact stores as properties, in the
# alphabetical order of their names.  The artifact does not contain the names.
_PROPERTIES = {
    "batch_norm_grad_v1": ("epsilon", "feature_index"),
    "batch_norm_inference_v1": ("epsilon", "feature_index"),
    "batch_norm_training_v1": ("epsilon", "feature_index"),
    "broadcast_in_dim_v1": ("broadcast_dimensions",),
    "broadcast_v1": ("broadcast_sizes",),
    "call_v1": ("callee",),
    "cholesky_v1": ("lower",),
    "compare_v1": ("compare_type", "comparison_direction"),
    "composite_v1": ("composite_attributes", "decomposition", "name", "version"),
    "composite_v2": ("composite_attributes", "decomposition", "name", "version"),
    "concatenate_v1": ("dimension",),
    "constant_v1": ("value",),
    "convolution_v1": (*_CONVOLUTION, "padding"),
    "custom_call_v1": _CUSTOM_CALL,
    "custom_call_v2": (*_CUSTOM_CALL, "result_tilings"),
    "dot_general_v1": _DOT,
    "dot_general_v2": (*_DOT, *_DOT_ALGORITHM),
    "dot_v1": ("precision_config",),
    "dynamic_broadcast_in_dim_v1": (
        *("broadcast_dimensions", "known_expanding_dimensions", "known_nonexpanding_dimensions"),
    ),
    "dynamic_conv_v1": (*_CONVOLUTION, "padding"),
    "dynamic_conv_v2": _CONVOLUTION,
    "dynamic_gather_v1": _GATHER,
    "dynamic_gather_v2": (*_GATHER, *_GATHER_BATCHES),
    "dynamic_iota_v1": ("iota_dimension",),
    "dynamic_slice_v1": ("slice_sizes",),
    "einsum_v1": ("einsum_config",),
    "fft_v1": ("fft_length", "fft_type"),
    "func_v1": ("arg_attrs", "function_type", "res_attrs", "sym_name", "sym_visibility"),
    "gather_v1": (*_GATHER, "slice_sizes"),
    "gather_v2": (*_GATHER, *_GATHER_BATCHES, "slice_sizes"),
    "get_dimension_size_v1": ("dimension",),
    "get_tuple_element_v1": ("index",),
    "iota_v1": ("iota_dimension",),
    "map_v1": ("dimensions",),
    "pad_v1": ("edge_padding_high", "edge_padding_low", "interior_padding"),
    "reduce_precision_v1": ("exponent_bits", "mantissa_bits"),
    "reduce_v1": ("dimensions",),
    "reduce_window_v1": ("base_dilations", "padding", "window_dilations", "window_dimensions", "window_strides"),
    "reverse_v1": ("dimensions",),
    "rng_bit_generator_v1": ("rng_algorithm",),
    "rng_v1": ("rng_distribution",),
    "scatter_v1": _SCATTER,
    "scatter_v2": (*_SCATTER, "input_batching_dims", "scatter_indices_batching_dims"),
    "select_and_scatter_v1": ("padding", "window_dimensions", "window_strides"),
    "set_dimension_size_v1": ("dimension",),
    "slice_v1": ("limit_indices", "start_indices", "strides"),
    "sort_v1": ("dimension", "is_stable"),
    "torch_index_select_v1": ("batch_dims", "dim"),
    "transpose_v1": ("permutation",),
    "triangular_solve_v1": ("left_side", "lower", "transpose_a", "unit_diagonal"),
    "unary_einsum_v1": ("einsum_config",),
}
# Operations whose second version states the accuracy of the result.
_WITH_ACCURACY = (
    *("cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic", "rsqrt", "sine"),
    *("sqrt", "tan", "tanh"),
)
_PROPERTIES |= {f"{name}_v2": ("result_accuracy",) for name in _WITH_ACCURACY}


def properties_of(name: str) -> tuple[str, ...] | None:
    """Return the names of the attributes that a portable artifact stores as properties, in their order.

    Return None if the table does not contain the operation.

    name: an operation of the versioned dialect, such as `iota_v1`.
    """
    found = _PROPERTIES.get(name)
    return None if found is None else tuple(sorted(found))


# Attributes that are structures: their fields are merged into the attributes of the operation.
_STRUCTURES = (
    "dimension_numbers",
    "dot_dimension_numbers",
    "scatter_dimension_numbers",
    "dot_batching",
    "dot_contracting",
    "window",
    "reduce_format",
    "slice_ranges",
)
_MOST_INTEGERS = 4096  # of a list that is written as dense elements


def flattened(attributes: Attributes) -> Attributes:
    """Return the attributes of an operation in the form that converters read.

    The fields of structures become attributes of their own, as in the versioned dialect.  Old versions of StableHLO
    write lists of integers as dense elements.  Such lists become tuples.
    """
    result: dict[str, Any] = {}
    for name, value in attributes.items():
        if name in _STRUCTURES and isinstance(value, dict):
            result.update(value)
        elif isinstance(value, Elements) and name != "value":
            result[name] = _as_integers(value)
        else:
            result[name] = value
    return result


def _as_integers(value: Elements) -> Any:
    """Return a short vector of integers as a tuple.  Return other elements unchanged."""
    shape = value.type.shape or ()
    if len(shape) != 1 or value.array.dtype.kind not in "iub" or (shape[0] or 0) > _MOST_INTEGERS:
        return value
    return tuple(np.broadcast_to(value.array, (shape[0] or 0,)).tolist())
