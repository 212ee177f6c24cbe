"""Looking at what is made of a module: pictures.  Needs the extra `explore`."""

from relvm.explore.placement import draw_placement

__all__ = ["draw_placement"]
