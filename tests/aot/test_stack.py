"""Tests of csrc/include/relvm_stack.h: blocks are aligned and do not overlap, and are freed in reverse order or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from relvm.compiler.find_compiler import expect_compiler, find_compiler
from relvm.tables import include_flags

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="a C test, and there is no C compiler")

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "relvm_stack.h"

#define EXPECT(what) if (!(what)) return printf("line %d: %s\n", __LINE__, #what), 1

static uint8_t memory[1000];

int main(void) {
  rvm_stack stack;
  void *a, *b, *c;
  size_t used;
  rvm_stack_init(&stack, memory + 1, sizeof memory - 1);

  EXPECT(rvm_stack_allocate(&stack, 100, 64, &a) == RVM_STACK_OK && (uintptr_t)a % 64 == 0);
  memset(a, 0xff, 100);
  used = stack.used_bytes;
  EXPECT(rvm_stack_allocate(&stack, 0, 1, &b) == RVM_STACK_OK && (uint8_t *)b >= (uint8_t *)a + 100);
  EXPECT(rvm_stack_allocate(&stack, 50, 16, &c) == RVM_STACK_OK && (uintptr_t)c % 16 == 0);
  memset(c, 0xff, 50);

  EXPECT(rvm_stack_free(&stack, a) == RVM_STACK_OUT_OF_ORDER);
  EXPECT(rvm_stack_free(&stack, b) == RVM_STACK_OUT_OF_ORDER);
  EXPECT(rvm_stack_free(&stack, NULL) == RVM_STACK_OK && stack.last != 0); /* nothing happens */
  EXPECT(rvm_stack_free(&stack, c) == RVM_STACK_OK);
  EXPECT(rvm_stack_free(&stack, c) == RVM_STACK_OUT_OF_ORDER); /* twice */
  EXPECT(rvm_stack_free(&stack, b) == RVM_STACK_OK);
  EXPECT(stack.used_bytes == used && stack.most_used_bytes > used);

  /* what does not fit changes nothing */
  EXPECT(rvm_stack_allocate(&stack, 1000, 1, &b) == RVM_STACK_EXHAUSTED && b == NULL && stack.used_bytes == used);
  EXPECT(rvm_stack_allocate(&stack, SIZE_MAX, 1, &b) == RVM_STACK_EXHAUSTED);
  EXPECT(rvm_stack_allocate(&stack, 1, (size_t)1 << 40, &b) == RVM_STACK_EXHAUSTED);
  EXPECT(rvm_stack_allocate(&stack, 1, 3, &b) == RVM_STACK_ALIGNMENT);
  EXPECT(rvm_stack_allocate(&stack, 1, 0, &b) == RVM_STACK_ALIGNMENT);
  EXPECT(rvm_stack_allocate(&stack, sizeof memory - 1 - used - sizeof(rvm_stack_tag), 1, &b) == RVM_STACK_OK);
  EXPECT(stack.used_bytes == sizeof memory - 1);
  EXPECT(rvm_stack_allocate(&stack, 0, 1, &c) == RVM_STACK_EXHAUSTED);

  memset((uint8_t *)a + 100, 0, 1); /* past the end of its block */
  EXPECT(rvm_stack_free(&stack, b) == RVM_STACK_OUT_OF_ORDER);

  rvm_stack_init(&stack, memory, sizeof memory);
  EXPECT(rvm_stack_free(&stack, memory) == RVM_STACK_OUT_OF_ORDER); /* nothing is allocated */
  rvm_stack_init(&stack, NULL, 1000); /* no bytes, whatever the size */
  EXPECT(rvm_stack_allocate(&stack, 0, 1, &a) == RVM_STACK_EXHAUSTED);
  EXPECT(rvm_stack_allocate(&stack, 0, 1, NULL) == RVM_STACK_NULL);
  EXPECT(rvm_stack_allocate(NULL, 0, 1, &a) == RVM_STACK_NULL);
  EXPECT(rvm_stack_free(NULL, memory) == RVM_STACK_NULL);
  puts("passed");
  return 0;
}
"""


def test_blocks_are_aligned_and_freed_in_order(tmp_path: Path) -> None:
    (tmp_path / "stack.c").write_text(PROGRAM)
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-g", "-fsanitize=address,undefined"]
    command = [*expect_compiler().command, *flags, *include_flags(), "stack.c", "-o", "stack"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./stack"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "passed\n"), done.stdout + done.stderr
