"""Inspection of modules: every compilation stage, the values in every execution mode, a debugger, and charts.

Needs the extra `explore`.
"""

from relvm.explore.compare.report import Comparison, ComparisonRow
from relvm.explore.compare.run import compare
from relvm.explore.debugger.breakpoints import Breakpoint
from relvm.explore.debugger.debugger import Debugger
from relvm.explore.debugger.frames import Frame, RegisterValue, Stop
from relvm.explore.stages.exploration import Exploration, explore
from relvm.explore.stages.view import Line, View
from relvm.explore.views.aot_placement import draw_placement
from relvm.explore.views.call_graph import call_graph, draw_calls, format_calls
from relvm.explore.views.dataflow import draw_dataflow, format_dataflow
from relvm.explore.views.interactive_graph import GraphPage, browse_calls, browse_dataflow
from relvm.explore.views.machine_peak import Peaks, copy_bandwidth, measured_peaks
from relvm.explore.views.memory_plan import draw_memory, format_memory
from relvm.explore.views.profile import draw_profile, format_profile
from relvm.explore.views.register_liveness import RegisterLife, draw_liveness, format_liveness, liveness
from relvm.explore.views.roofline import draw_roofline

__all__ = [
    "Breakpoint",
    "Comparison",
    "ComparisonRow",
    "Debugger",
    "Exploration",
    "Frame",
    "GraphPage",
    "Line",
    "Peaks",
    "RegisterLife",
    "RegisterValue",
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
