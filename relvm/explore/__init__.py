"""Looking at what is made of a module: every stage of it, and pictures.  Needs the extra `explore`."""

from relvm.explore.memory import draw_memory, format_memory
from relvm.explore.pipeline import Exploration, Line, View, explore
from relvm.explore.placement import draw_placement

__all__ = ["Exploration", "Line", "View", "draw_memory", "draw_placement", "explore", "format_memory"]
