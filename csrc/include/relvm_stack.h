/* relvm_stack.h: a stack allocator.  It allocates the workspaces, inputs and outputs of several models from one block
   of memory.  The block that was allocated last must be freed first.  The header needs no C library.

   Functions with a status return RVM_STACK_NULL if a required pointer is NULL.  Freeing NULL does nothing.  The
   functions do not check whether the memory has the stated size, or whether rvm_stack_init has initialized the
   stack. */
#ifndef RELVM_STACK_H
#define RELVM_STACK_H

#include <stddef.h>
#include <stdint.h>

enum rvm_stack_status {
  RVM_STACK_OK = 0,
  RVM_STACK_EXHAUSTED = 1, /* too little memory is left; nothing was allocated */
  /* The block is not the last one allocated, or its tag was overwritten; nothing was freed. */
  RVM_STACK_OUT_OF_ORDER = 2,
  RVM_STACK_ALIGNMENT = 3, /* the alignment is not a power of two */
  RVM_STACK_NULL = 4       /* the argument `stack`, or `block` of rvm_stack_allocate, is NULL */
};

typedef struct rvm_stack {
  uint8_t *bytes;
  size_t size_bytes;
  size_t used_bytes;
  size_t most_used_bytes; /* maximum of used_bytes so far */
  size_t last;            /* offset of the last allocated block, or 0 */
} rvm_stack;

/* The header in front of each block. */
typedef struct rvm_stack_tag {
  size_t tag;        /* marks an allocated block */
  size_t used_bytes; /* used_bytes of the stack before the allocation */
  size_t last;       /* `last` of the stack before the allocation */
} rvm_stack_tag;

/* Initializes an empty stack over `size_bytes` bytes of memory.  If `bytes` is NULL, the stack has no memory. */
static inline void rvm_stack_init(rvm_stack *stack, void *bytes, size_t size_bytes) {
  if (!stack) return;
  stack->bytes = (uint8_t *)bytes;
  stack->size_bytes = bytes ? size_bytes : 0;
  stack->used_bytes = stack->most_used_bytes = stack->last = 0;
}

/* Returns the tag of a block at `offset` bytes from the start of the stack.  The value is arbitrary, but a stray write
   is unlikely to produce it. */
static inline size_t rvm_stack_tag_of(size_t offset) { return ~offset * 31u + 17u; }

static inline void rvm_stack_copy(void *target, const void *source, size_t count) {
  for (size_t i = 0; i < count; i++) ((uint8_t *)target)[i] = ((const uint8_t *)source)[i];
}

/* Allocates `size_bytes` bytes at a multiple of `alignment` and stores their address in *block.  On failure, *block is
   NULL. */
static inline int rvm_stack_allocate(rvm_stack *stack, size_t size_bytes, size_t alignment, void **block) {
  rvm_stack_tag tag;
  size_t start, left;
  size_t before = sizeof tag; /* bytes in front of the block: its tag and, after the next steps, padding */
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

/* Frees `block`.  Fails with RVM_STACK_OUT_OF_ORDER if `block` is not the last allocated one. */
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
