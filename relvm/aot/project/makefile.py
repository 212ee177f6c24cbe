"""The Makefile of an export."""

from __future__ import annotations

from collections.abc import Iterable

from relvm.aot.config import AotConfig
from relvm.aot.project.board_fit import LEVEL, SECTIONS
from relvm.quoting import makefile_word

_MAKEFILE = """\
# {head}
{tools}
CFLAGS ?= {flags}
TOLERANCE ?= 1e-5
# -fwrapv: integers wrap around.  -ffp-contract=off: products are not fused with sums; otherwise results differ in their
# last bits from those of relvm on the same processor.
ALL_CFLAGS = {standard} -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off \\
  -fopenmp-simd -DRVM_OPENMP_SIMD -Iinclude -Isrc $(CFLAGS)
OBJECTS = {objects}

{library}: $(OBJECTS)
\t{link}

%.o: %.c .options $(wildcard include/*.h src/*.h)
\t$(CC) $(ALL_CFLAGS) -c $< -o $@

# What was compiled otherwise is compiled again.
.options: FORCE
\t@echo '$(CC) $(ALL_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(ALL_CFLAGS)' > $@

# The bytes of code (text, with the constants) and of static memory (data, bss) of each file.
size: {library}
\tsize $(OBJECTS)
{test}
clean:
\trm -f {library} $(OBJECTS) test/main .options .tolerance

.PHONY: FORCE clean size test
"""

# The value of CC that make predefines is replaced.
_BOARD_TOOLS = """\
ifeq ($(origin CC),default)
CC = {tools}gcc
endif
ifeq ($(origin AR),default)
AR = {tools}ar
endif"""

_TEST = """
.tolerance: FORCE
\t@echo '$(TOLERANCE)' | cmp -s - $@ || echo '$(TOLERANCE)' > $@

test/main: test/main.c lib{name}.a .tolerance
\t$(CC) $(ALL_CFLAGS) -DRELVM_TOLERANCE=$(TOLERANCE) $< lib{name}.a -lm -o $@

test: test/main
\t./test/main
"""


def print_makefile(config: AotConfig, files: Iterable[str], *, tests: bool) -> str:
    """Return the text of the Makefile.  files: the paths of the sources.  tests: whether to add the target `test`."""
    name, board = makefile_word(config.name), config.known_board
    tests = tests and board is None  # a board has no place for the output of the self-test
    tools, flags = "CC ?= cc\nAR ?= ar", "-O3"
    if board is not None:
        tools, flags = _BOARD_TOOLS.format(tools=board.tools), " ".join((LEVEL, *board.flags, *SECTIONS))
    objects = " ".join(sorted(makefile_word(path[:-2]) + ".o" for path in files if path.endswith(".c")))
    if config.runtime == "hosted":
        library, standard = f"{name}.so", "-std=gnu11 -fPIC"
        head, link = f"make: the library {library}, for AotExecutor.", "$(CC) -shared $(OBJECTS) -lm -o $@"
    else:
        library, standard = f"lib{name}.a", "-std=c99 -Wall -Wextra -Werror -pedantic"
        head, link = f"make: the library {library}.", "$(AR) rcs $@ $(OBJECTS)"
        head += "   make test: runs it on the inputs of test/main.c, and compares." if tests else ""
    test = _TEST.format(name=name) if tests else ""
    return _MAKEFILE.format(
        name=name,
        head=head,
        tools=tools,
        flags=flags,
        standard=standard,
        library=library,
        link=link,
        objects=objects,
        test=test,
    )
