"""How the site is built of docs/: `sphinx-build -W docs build/site`.  It needs no network and writes only there."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "_extensions"))

import python_api

import relvm

project = "relvm"
author = "the authors of relvm"
copyright = "the authors of relvm; Apache-2.0"
version = release = relvm.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "declarations",
    "python_api",
    "pages",
    "pictures",
    "notebooks",
    "playground",
    "search_terms",
]
exclude_patterns = ["_extensions"]

myst_heading_anchors = 4

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_legacy_class_based = False
default_role = "py:obj"  # what docstrings have in backticks: a link where it is the name of something documented
numpydoc_show_class_members = False  # autodoc shows them

# Types of relvm that signatures name are in the reference, but for those that are only handed on.
nitpicky = True
nitpick_ignore_regex = [
    ("py:.*", r"(?!relvm\.).*"),
    ("py:(class|obj)", "|".join(python_api.HANDED_ON)),
]

smartquotes = False  # --option stays as it is

html_theme = "furo"
html_title = "relvm"
html_static_path = ["_static"]
html_css_files = ["relvm.css"]
html_copy_source = False
html_show_sourcelink = False
