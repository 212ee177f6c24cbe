/* relvm_stack.h: memory for what runs one after the other, out of one block: the workspaces of several models, inputs, outputs.
 * What is allocated last is freed first.  No C library is needed.
 * A NULL where memory is needed is RVM_STACK_NULL; freeing NULL does nothing.  Not checked: a size that exceeds the bytes
 * behind it, and a stack that rvm_stack_init has not made.
 */
#ifndef RELVM_STACK_H
#define RELVM_STACK_H

#include <stddef.h>
#include <stdint.h>

enum rvm_stack_status {
  RVM_STACK_OK = 0,
  RVM_STACK_EXHAUSTED = 1,    /* there is not as much left; nothing was allocated */
  RVM_STACK_OUT_OF_ORDER = 2, /* what is to be freed is not what was allocated last, or its tag was written over; nothing was freed */
  RVM_STACK_ALIGNMENT = 3,    /* not a power of two */
  RVM_STACK_NULL = 4          /* the stack, or the place for a block, is NULL */
};

typedef struct rvm_stack {
  uint8_t *bytes;
  size_t size_bytes;
  size_t used_bytes;
  size_t most_used_bytes; /* ever */
  size_t last;            /* the place of what was allocated last; 0: nothing is */
} rvm_stack;

/* What stands before each block. */
typedef struct rvm_stack_tag {
  size_t tag;        /* tells a block that is in use from anything else */
  size_t used_bytes; /* before it was allocated */
  size_t last;
} rvm_stack_tag;

/* Makes `size_bytes` bytes a stack that nothing is allocated from.  `bytes` NULL: there are none. */
static inline void rvm_stack_init(rvm_stack *stack, void *bytes, size_t size_bytes) {
  if (!stack) return;
  stack->bytes = (uint8_t *)bytes;
  stack->size_bytes = bytes ? size_bytes : 0;
  stack->used_bytes = stack->most_used_bytes = stack->last = 0;
}

/* The tag of a block that begins at `place` of the stack. */
static inline size_t rvm_stack_tag_of(size_t place) { return ~place * 31u + 17u; }

static inline void rvm_stack_copy(void *target, const void *source, size_t count) {
  for (size_t i = 0; i < count; i++) ((uint8_t *)target)[i] = ((const uint8_t *)source)[i];
}

/* Makes *block `size_bytes` bytes at a multiple of `alignment`; on failure *block is NULL. */
static inline int rvm_stack_allocate(rvm_stack *stack, size_t size_bytes, size_t alignment, void **block) {
  rvm_stack_tag tag;
  size_t start, left, before = sizeof tag;
  if (block) *block = NULL;
  if (!stack || !block) return RVM_STACK_NULL;
  start = stack->used_bytes;
  left = stack->size_bytes - start;
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) return RVM_STACK_ALIGNMENT;
  if (left < before) return RVM_STACK_EXHAUSTED;
  before += (size_t)(0 - (uintptr_t)(stack->bytes + start + before)) & (alignment - 1);
  if (left < before || left - before < size_bytes) return RVM_STACK_EXHAUSTED;
  tag.tag = rvm_stack_tag_of(start + before);
  tag.used_bytes = start;
  tag.last = stack->last;
  stack->last = start + before;
  stack->used_bytes = start + before + size_bytes;
  if (stack->most_used_bytes < stack->used_bytes) stack->most_used_bytes = stack->used_bytes;
  *block = stack->bytes + stack->last;
  rvm_stack_copy(stack->bytes + stack->last - sizeof tag, &tag, sizeof tag);
  return RVM_STACK_OK;
}

/* Frees the block that was allocated last. */
static inline int rvm_stack_free(rvm_stack *stack, void *block) {
  rvm_stack_tag tag;
  if (!stack) return RVM_STACK_NULL;
  if (!block) return RVM_STACK_OK;
  if (stack->last == 0 || (uint8_t *)block != stack->bytes + stack->last) return RVM_STACK_OUT_OF_ORDER;
  rvm_stack_copy(&tag, stack->bytes + stack->last - sizeof tag, sizeof tag);
  if (tag.tag != rvm_stack_tag_of(stack->last) || tag.used_bytes > stack->last || tag.last > tag.used_bytes)
    return RVM_STACK_OUT_OF_ORDER;
  stack->used_bytes = tag.used_bytes;
  stack->last = tag.last;
  return RVM_STACK_OK;
}

#endif
