"""Looking at what is made of a module: every stage of it, its values in every mode, and pictures.  Needs the extra
`explore`."""

from relvm.explore.breakpoints import Breakpoint
from relvm.explore.browsing import GraphPage, browse_calls, browse_dataflow
from relvm.explore.calls import call_graph, draw_calls, format_calls
from relvm.explore.comparing import compare
from relvm.explore.comparison import Comparison, Row
from relvm.explore.dataflow import draw_dataflow, format_dataflow
from relvm.explore.debugger import Debugger
from relvm.explore.liveness import RegisterLife, draw_liveness, format_liveness, liveness
from relvm.explore.memory import draw_memory, format_memory
from relvm.explore.peaks import Peaks, copy_bandwidth, measured_peaks
from relvm.explore.pipeline import Exploration, Line, View, explore
from relvm.explore.placement import draw_placement
from relvm.explore.profile import draw_profile, format_profile
from relvm.explore.roofline import draw_roofline
from relvm.explore.stops import Frame, Register, Stop

__all__ = [
    "Breakpoint",
    "Comparison",
    "Debugger",
    "Exploration",
    "Frame",
    "GraphPage",
    "Line",
    "Peaks",
    "Register",
    "RegisterLife",
    "Row",
    "Stop",
    "View",
    "browse_calls",
    "browse_dataflow",
    "call_graph",
    "compare",
    "copy_bandwidth",
    "draw_calls",
    "draw_dataflow",
    "draw_liveness",
    "draw_memory",
    "draw_placement",
    "draw_profile",
    "draw_roofline",
    "explore",
    "format_calls",
    "format_dataflow",
    "format_liveness",
    "format_memory",
    "format_profile",
    "liveness",
    "measured_peaks",
]
