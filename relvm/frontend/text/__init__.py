"""The text frontend: `parse_module`, `parse_type`, `parse_expr`."""

from relvm.frontend.text.parser import parse_expr, parse_module, parse_type

__all__ = ["parse_expr", "parse_module", "parse_type"]
