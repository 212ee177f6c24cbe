"""What is exported gives, bit for bit, what the machine gives in compiled mode."""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import read_cases
from exported import Failed, compile_programs, run_program
from modes import assert_same_bits, plain
from programs_ahead import BY_NAME, PROGRAMS, arguments

from relvm import aot, vm
from relvm.errors import RelvmArgumentError, RelvmShapeError, RelvmTypeError
from relvm.frontend.text import parse_module
from relvm.vm.toolchain import find_compiler

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="an export is built by a C compiler, and there is none")
