"""Looking at what is made of a module: every stage of it, its values in every mode, and pictures.  Needs the extra
`explore`."""

from relvm.explore.comparing import compare
from relvm.explore.comparison import Comparison, Row
from relvm.explore.pipeline import Exploration, Line, View, explore
from relvm.explore.placement import draw_placement

__all__ = ["Comparison", "Exploration", "Line", "Row", "View", "compare", "draw_placement", "explore"]
