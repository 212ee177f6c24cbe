/* test_kernels_runs.h: part of test_kernels.c: runs of programs, and the errors and limits that end them. */
#ifndef RELVM_TEST_KERNELS_RUNS_H
#define RELVM_TEST_KERNELS_RUNS_H

/* ---- running ---- */

/* A substitute for the machine, with a limit of steps. */
static int64_t steps_left = INT64_MAX, checks;
static int32_t threads = 1, ends;

static rvm_status spend(rvm_machine *machine, int64_t cost, rvm_value *result) {
  (void)machine;
  checks++;
  steps_left -= cost;
  return steps_left > 0 ? RVM_OK : rvm_fail(result, RVM_TIMEOUT, "too many steps");
}

static rvm_status poll(rvm_machine *machine, rvm_value *result) { return spend(machine, 0, result); }

static int32_t is_ending(rvm_machine *machine) {
  (void)machine;
  return ends;
}

static void share(rvm_machine *machine, rvm_part part, const void *shared, int64_t count, int64_t grain) {
  (void)machine;
  rvm_workers_run(threads, part, shared, count, grain);
}

static rvm_pool *pool;
static rvm_value tensors[5];
static int64_t *index_, *out_index;
static float *in, *out;
static uint8_t *mask;

static void make_tensors(void) {
  const int64_t n[] = {ELEMENTS};
  const int32_t dtypes[] = {RVM_DTYPE_f32, RVM_DTYPE_i64, RVM_DTYPE_bool, RVM_DTYPE_f32, RVM_DTYPE_i64};
  for (int i = 0; i < 5; i++) tensors[i] = tensor_value(dtypes[i], 1, n);
  in = tensors[IN_F32].as.tensor->dl.data;
  index_ = tensors[IN_I64].as.tensor->dl.data;
  mask = tensors[IN_BOOL].as.tensor->dl.data;
  out = tensors[OUT_F32].as.tensor->dl.data;
  out_index = tensors[OUT_I64].as.tensor->dl.data;
  for (int i = 0; i < ELEMENTS; i++)
    in[i] = (float)i, index_[i] = i, mask[i] = i % 2 == 0, out[i] = -1, out_index[i] = -1;
}

static void release_tensors(void) {
  for (int i = 0; i < 5; i++) rvm_value_release(&tensors[i]);
}

static rvm_status run_with(const rvm_value *arguments, int32_t count) {
  rvm_kernel_program program;
  int64_t size_bytes;
  unsigned char *bytes = kernel_finish(&k, &size_bytes);
  rvm_status status = rvm_kernel_program_read(bytes, size_bytes, &program, &error);
  if (!status) {
    const rvm_kernel_host host = {.pool = pool,
                                  .threads = threads,
                                  .steps_left = steps_left,
                                  .spend = spend,
                                  .poll = poll,
                                  .is_ending = is_ending,
                                  .parallel = share};
    status = rvm_kernel_program_run(&program, &host, arguments, count, &error);
  } else {
    if (status != RVM_OUT_OF_MEMORY) printf("refused: %s\n", error.as.error->message);
  }
  free(bytes);
  return status;
}

#define RUNS(...)                          \
  do {                                     \
    begin();                               \
    __VA_ARGS__;                           \
    E(end);                                \
    CHECK_OK(run_with(tensors, 5), error); \
  } while (0)
#define FAILS_WITH(status, text, ...)                       \
  do {                                                      \
    begin();                                                \
    __VA_ARGS__;                                            \
    E(end);                                                 \
    CHECK_FAILS(run_with(tensors, 5), status, text, error); \
  } while (0)
#define LEAVES(object, ...) FAILS_WITH(RVM_INDEX_ERROR, "outside its " object, __VA_ARGS__)
/* Sets the current strip to `count` elements; `count` is a scalar register. */
#define STRIP(count) E(strips, FREE_3, ZERO_, count, (uint16_t)(HERE + 1))
/* Sets the current strip to as many rows of `width` elements as it can hold.  FREE_2 is the width. */
#define BLOCK(width) set(FREE_2, width), E(blocks, FREE_3, ZERO_, MANY, FREE_2, (uint16_t)(HERE + 1))
/* Sets a scalar register to a value made of the program's constants. */
static void set(uint16_t to, int64_t value) {
  E(copy, to, ZERO_);
  const uint64_t bits = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
  for (int i = 63; i >= 0; i--) {
    if (bits >> i) E(add, to, to, to);
    if (bits >> i & 1) E(add, to, to, ONE);
  }
  if (value < 0) E(sub, to, ZERO_, to);
}

static void accesses_stay_inside_of_their_buffers(void) {
  RUNS(E(load, FREE, IN_F32, LAST, 4), E(store, OUT_F32, LAST, FREE, 4));
  CHECK(out[ELEMENTS - 1] == (float)(ELEMENTS - 1));
  const int64_t wrong[] = {-1, ELEMENTS, ELEMENTS + 1, INT64_MAX, INT64_MIN, INT64_MAX / 4 + 2, INT64_C(1) << 62};
  for (int i = 0; i < COUNT_OF(wrong); i++) {
    LEAVES("buffer", set(FREE, wrong[i]), E(load, FREE_2, IN_F32, FREE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), E(store, OUT_I64, FREE, ONE, 8));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(view, w0, IN_F32, FREE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(view_written, w0, OUT_F32, FREE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(strided, v0, IN_F32, FREE, ONE, 4, NO));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(store_strided, OUT_F32, FREE, ONE, ONE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(iota, v0, FREE, ONE), E(gather, v1, IN_F32, v0, 4, NO));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(iota, v0, FREE, ONE), E(scatter, OUT_F32, v0, ONE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(fill, v0, ONE, ONE, 1),
           E(strided, v1, IN_F32, FREE, ONE, 4, v0));
    /* a step that leads outside */
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(load_rows, v0, IN_F32, FREE, ZERO_, ZERO_, ONE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), STRIP(ONE), E(store_rows, OUT_F32, FREE, ZERO_, ZERO_, ONE, ONE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), BLOCK(2), E(load_rows, v0, IN_F32, ZERO_, FREE, ZERO_, FREE_2, 4));
    LEAVES("buffer", set(FREE, wrong[i]), BLOCK(2), E(load_rows, v0, IN_F32, ZERO_, ZERO_, FREE, FREE_2, 4));
    LEAVES("buffer", set(FREE, wrong[i]), BLOCK(2), E(store_rows, OUT_F32, ZERO_, FREE, ZERO_, FREE_2, v0, 4));
    LEAVES("buffer", set(FREE, wrong[i]), BLOCK(2), E(store_rows, OUT_F32, ZERO_, ZERO_, FREE, FREE_2, ONE, 4));
    RUNS(set(FREE, wrong[i]), STRIP(ONE), E(load_rows, v0, IN_F32, ZERO_, FREE, FREE, ONE, 4),
         E(store_rows, OUT_F32, ZERO_, FREE, FREE, ONE, v0, 4));
    LEAVES("buffer", set(FREE, wrong[i]), set(FREE_2, 2), STRIP(FREE_2), E(strided, v0, IN_F32, ZERO_, FREE, 4, NO));
    LEAVES("buffer", set(FREE, wrong[i]), set(FREE_2, 2), STRIP(FREE_2),
           E(store_strided, OUT_F32, ZERO_, FREE, ONE, 4));
    LEAVES("buffer", set(FREE, wrong[i]), set(FREE_2, 2), STRIP(FREE_2), E(fill, v0, ONE, FREE_2, 1),
           E(strided, v1, IN_F32, ZERO_, FREE, 4, v0));
  }
  LEAVES("buffer", STRIP(MANY), E(view, w0, IN_F32, LAST, 4));
  LEAVES("buffer", STRIP(MANY), E(strided, v0, IN_F32, LAST, ONE, 4, NO));
  LEAVES("buffer", STRIP(MANY), E(strided, v0, IN_F32, ONE, MINUS, 4, NO));
  LEAVES("buffer", STRIP(MANY), E(store_strided, OUT_F32, LAST, ONE, ONE, 4));
  /* backward, and with a step of 0 */
  RUNS(set(FREE, 511), STRIP(MANY), E(strided, v0, IN_F32, FREE, MINUS, 4, NO),
       E(store_strided, OUT_F32, FREE, MINUS, v0, 4));
  CHECK(out[0] == 0 && out[511] == 511);
  RUNS(STRIP(MANY), E(strided, v0, IN_F32, LAST, ZERO_, 4, NO), E(store_strided, OUT_F32, ZERO_, ONE, v0, 4));
  CHECK(out[0] == (float)(ELEMENTS - 1) && out[511] == (float)(ELEMENTS - 1));
  /* indices that the mask excludes may be anywhere */
  RUNS(STRIP(MANY), E(fill, v0, ZERO_, MANY, 1), E(iota, v1, MINUS, MINUS), E(gather, v2, IN_F32, v1, 4, v0),
       E(store_strided, OUT_F32, ZERO_, ONE, v2, 4), E(strided, v2, IN_F32, MINUS, MINUS, 4, v0));
  CHECK(out[0] == 0 && out[511] == 0);
  LEAVES("buffer", E(load, FREE, ARRAY_2, LAST, 1));
  RUNS(set(FREE, ARRAY_2_BYTES / 8 - 1), E(load, FREE_2, ARRAY_2, FREE, 8));
  LEAVES("buffer", set(FREE, ARRAY_2_BYTES / 8), E(load, FREE_2, ARRAY_2, FREE, 8));
}

/* Makes views of one element, then a strip of many elements. */
#define SHORT_VIEWS()                                                                 \
  STRIP(ONE), E(view_written, w0, ARRAY, ONE, 4), E(view_written, w1, ARRAY, ONE, 8), \
      E(view_written, w2, ARRAY, ONE, 1), STRIP(MANY)
#define READ_VIEWS() STRIP(ONE), E(view, w0, ARRAY, ONE, 4), E(view, w1, ARRAY, ONE, 8), E(view, w2, ARRAY, ONE, 1)

static void strips_have_room(void) {
  const uint16_t neg = function_of(4, 4, 1, 0);
  LEAVES("strip", SHORT_VIEWS(), E(apply, v0, w0, w0, neg));
  LEAVES("strip", SHORT_VIEWS(), E(apply, w0, v0, v0, neg));
  LEAVES("strip", SHORT_VIEWS(), E(apply, v0, v0, w0, ADD_F32));
  LEAVES("strip: all its operands are scalars", STRIP(ONE), E(apply, v0, ONE, ONE, ADD_F32));
  LEAVES("strip", SHORT_VIEWS(), E(gather, w0, IN_F32, v0, 4, NO));
  LEAVES("strip", SHORT_VIEWS(), E(gather, v0, IN_F32, w1, 4, NO));
  LEAVES("strip", SHORT_VIEWS(), E(gather, v0, IN_F32, v0, 4, w2));
  LEAVES("strip", STRIP(ONE), E(gather, v0, IN_F32, ONE, 4, NO));
  LEAVES("strip", STRIP(ONE), E(iota, v1, ZERO_, ZERO_), E(gather, v0, IN_F32, v1, 4, ONE));
  LEAVES("strip", SHORT_VIEWS(), E(strided, w0, IN_F32, ZERO_, ONE, 4, NO));
  LEAVES("strip", SHORT_VIEWS(), E(strided, v0, IN_F32, ZERO_, ONE, 4, w2));
  LEAVES("strip", STRIP(ONE), E(strided, v0, IN_F32, ZERO_, ONE, 4, ONE));
  LEAVES("strip", SHORT_VIEWS(), E(scatter, ARRAY, w1, v0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(scatter, ARRAY, v1, w0, 4));
  LEAVES("strip", STRIP(ONE), E(scatter, ARRAY, ZERO_, ONE, 4));
  LEAVES("strip", SHORT_VIEWS(), E(store_strided, ARRAY, ZERO_, ONE, w0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(choose, w0, v0, v0, v0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(choose, v0, w2, v0, v0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(choose, v0, v0, w0, v0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(choose, v0, v0, v0, w0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(move, w0, v0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(move, v0, w0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(iota, w1, ZERO_, ONE));
  LEAVES("strip", SHORT_VIEWS(), E(accumulate, v0, w0, ADD_F32));
  LEAVES("strip", STRIP(ONE), E(accumulate, v0, ONE, ADD_F32));
  LEAVES("strip", SHORT_VIEWS(), E(load_rows, w0, IN_F32, ZERO_, ZERO_, ZERO_, ONE, 4));
  LEAVES("strip", SHORT_VIEWS(), E(store_rows, ARRAY, ZERO_, ZERO_, ZERO_, ONE, w0, 4));
  LEAVES("strip", SHORT_VIEWS(), E(iota_rows, w1, ZERO_, ZERO_, ZERO_, ONE));
  const int64_t widths[] = {0, -1, 3, 513, INT64_MAX, INT64_MIN}; /* no positive divisors of 512 */
  for (int i = 0; i < COUNT_OF(widths); i++) {
    LEAVES("strip", set(FREE, widths[i]), STRIP(MANY), E(load_rows, v0, IN_F32, ZERO_, ZERO_, ZERO_, FREE, 4));
    LEAVES("strip", set(FREE, widths[i]), STRIP(MANY), E(store_rows, ARRAY, ZERO_, ZERO_, ZERO_, FREE, v0, 4));
    LEAVES("strip", set(FREE, widths[i]), STRIP(MANY), E(iota_rows, v0, ZERO_, ZERO_, ZERO_, FREE));
  }
  LEAVES("strip", READ_VIEWS(), E(move, w0, v0, 4)); /* read-only views */
  LEAVES("strip", READ_VIEWS(), E(iota, w1, ZERO_, ONE));
  /* a jump past the instruction that makes the view */
  LEAVES("strip", STRIP(ONE), E(jump, 3), E(view, w0, IN_F32, ZERO_, 4), E(move, v0, w0, 4));
  RUNS(E(jump, 2), E(view, w0, IN_F32, ZERO_, 4), E(move, v0, w0, 4), E(move, w0, v0, 4)); /* no elements yet */
  RUNS(E(jump, 2), E(view, w0, IN_F32, ZERO_, 4), E(store_strided, OUT_F32, ONE, ONE, w0, 4));
  RUNS(STRIP(ONE), VIEWS(), E(apply, v0, w0, w0, neg), E(move, v0, w0, 4));
}

static void strips_go_on(void) {
  /* out = in + in in two strips; a sum, a maximum and other folds */
  RUNS(E(strips, FREE, ZERO_, s0, (uint16_t)(HERE + 5)), E(view, w0, IN_F32, FREE, 4),
       E(view_written, w1, OUT_F32, FREE, 4), E(apply, w1, w0, w0, ADD_F32),
       E(next_strip, FREE, s0, (uint16_t)(HERE - 3)));
  for (int i = 0; i < ELEMENTS; i++) CHECK(out[i] == (float)(2 * i));
  RUNS(E(fill, v0, ZERO_, MANY, 8), E(strips, FREE, ZERO_, s0, (uint16_t)(HERE + 4)), E(view, w1, IN_I64, FREE, 8),
       E(accumulate, v0, w1, ADD_I64), E(next_strip, FREE, s0, (uint16_t)(HERE - 2)), E(copy, FREE_2, ZERO_),
       E(fold_lanes, FREE_2, v0, s0, ADD_I64), E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], (int64_t)ELEMENTS * (ELEMENTS - 1) / 2);
  /* lanes of 1, then the remaining elements in order: 1 + 16 of 18, then two more; none; only remaining elements */
  RUNS(E(fill, v0, ONE, MANY, 8), set(FREE, 18), E(copy, FREE_2, ONE), E(fold_lanes, FREE_2, v0, FREE, ADD_I64),
       E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], 19);
  RUNS(E(copy, FREE_2, ONE), E(fold_lanes, FREE_2, v0, MINUS, ADD_I64), E(fold_lanes, FREE_2, v0, ZERO_, ADD_I64),
       E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], 1);
  RUNS(E(fill, v0, ONE, MANY, 8), set(FREE, 15), E(copy, FREE_2, ONE), E(fold_lanes, FREE_2, v0, FREE, ADD_I64),
       E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], 16);
  RUNS(E(copy, FREE_2, ONE), E(fold, FREE_2, v0, MINUS, ADD_I64), E(fold, FREE_2, v0, ZERO_, ADD_I64),
       E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], 1);
  RUNS(E(fill, v0, ONE, MANY, 8), E(copy, FREE_2, ZERO_), E(fold, FREE_2, v0, MANY, ADD_I64),
       E(store, OUT_I64, ZERO_, FREE_2, 8));
  CHECK_INT(out_index[0], RVM_STRIP);
  RUNS(E(fill, v0, ONE, MINUS, 8));
  /* no elements */
  RUNS(E(strips, FREE, ONE, ZERO_, (uint16_t)(HERE + 1)), E(strips, FREE, MANY, MINUS, (uint16_t)(HERE + 1)),
       E(iota, v0, ONE, ONE));
  RUNS(E(strips, FREE, MINUS, MANY, (uint16_t)(HERE + 1)), E(iota, v0, ONE, ONE)); /* 2^63 elements */
}

/* Reads the transposed matrix of 3 rows of 200 by its columns: 170 rows of 3, then 30. */
static void blocks_go_on(void) {
  RUNS(set(FREE, 3), set(FREE_2, 200), E(blocks, FREE_3, ZERO_, FREE_2, FREE, (uint16_t)(HERE + 6)),
       E(load_rows, v0, IN_F32, FREE_3, ONE, FREE_2, FREE, 4), E(mul, FLAG, FREE_3, FREE),
       E(store_rows, OUT_F32, FLAG, FREE, ONE, FREE, v0, 4), E(iota_rows, v1, FREE_3, ONE, FREE_2, FREE),
       E(next_block, FREE_3, FREE_2, FREE, (uint16_t)(HERE - 4)));
  for (int i = 0; i < ELEMENTS; i++) CHECK(out[i] == (float)(i % 3 * 200 + i / 3));
  RUNS(set(FREE, 3), set(FREE_2, 200), BLOCK(3), E(iota_rows, v1, MINUS, ONE, LAST, FREE_2), E(move, v0, ZERO_, 8),
       set(FREE, 3), E(store_rows, OUT_I64, ZERO_, FREE, ONE, FREE, v1, 8));
  for (int i = 0; i < 510; i++) CHECK_INT(out_index[i], -1 + i / 3 + i % 3 * (ELEMENTS - 1));
  RUNS(BLOCK(0), BLOCK(-1), BLOCK(513), E(blocks, FREE_3, ONE, ONE, ONE, (uint16_t)(HERE + 1)), E(iota, v0, ONE, ONE));
  RUNS(BLOCK(512), E(iota, v0, ONE, ONE), E(move, v1, v0, 8), E(next_block, FREE_3, ZERO_, FREE_2, 0));
}

static void scalars_have_no_undefined_results(void) {
#define GIVES(expected, name, ...)                                                               \
  RUNS(set(FREE, INT64_MIN), E(name, FREE_2, __VA_ARGS__), E(store, OUT_I64, ZERO_, FREE_2, 8)); \
  CHECK_INT(out_index[0], expected)
  GIVES(INT64_MIN, div, FREE, MINUS);
  GIVES(0, mod, FREE, MINUS);
  GIVES(0, div, FREE, ZERO_);
  GIVES(0, mod, FREE, ZERO_);
  GIVES(INT64_MIN / 599, div, FREE, LAST);
  GIVES(INT64_MIN % 599, mod, FREE, LAST);
  GIVES(INT64_MAX, sub, FREE, ONE);
  GIVES(INT64_MIN, add, MANY, ONE);
  GIVES(INT64_MIN, mul, FREE, MINUS);
  GIVES(INT64_MAX, multiply_add, FREE, ONE, MINUS);
  GIVES(INT64_MAX, larger, FREE, MANY);
  GIVES(INT64_MIN, smaller, FREE, MANY);
  GIVES(1, larger, ONE, ZERO_);
  GIVES(0, smaller, ZERO_, ONE);
  GIVES(1, lt, FREE, MANY);
  GIVES(1, le, ONE, ONE);
  GIVES(0, eq, ONE, MANY);
  GIVES(1, ne, ONE, MANY);
  GIVES(INT64_MAX, select, ONE, MANY, ONE);
  GIVES(1, select, ZERO_, MANY, ONE);
  RUNS(E(copy, FREE, MANY), E(next, FREE, ZERO_, 2), E(store, OUT_I64, ZERO_, FREE, 8)); /* INT64_MAX + 1 */
}

static void stated_failures_have_their_text(void) {
  const uint16_t values[] = {LAST, MINUS};
  FAILS_WITH(RVM_SHAPE_ERROR, "values 599 and -1", kernel_arguments(&k, values, 2), E(fail, RVM_SHAPE_ERROR, 1, 0, 2));
  FAILS_WITH(RVM_TIMEOUT, "no values", E(fail, RVM_TIMEOUT, 0, 0, 0));
  char text[700]; /* two-byte characters after one byte: a character that does not fit is left out */
  for (int start = 0; start < 2; start++) {
    for (int i = 0; i < 600; i++) text[i] = i < start ? 'x' : (i - start) % 2 ? '\xa9' : '\xc3';
    text[600 + start] = 0;
    if (start) text[599] = 'y', text[600] = 0;
    begin();
    kernel_message(&k, text);
    E(fail, RVM_SHAPE_ERROR, 2, 0, 0);
    E(end);
    CHECK_INT(run_with(tensors, 5), RVM_SHAPE_ERROR);
    const size_t length = strlen(error.as.error->message);
    CHECK(length > 400 && length < 512 && length % 2 == (size_t)start &&
          strncmp(error.as.error->message, text, length) == 0);
    rvm_value_release(&error);
  }
}

/* ---- arguments ---- */

static void arguments_are_compared_with_the_tensors(void) {
  rvm_value given[5];
  const int64_t short_dims[] = {ELEMENTS - 1}, two[] = {ELEMENTS, 1};
#define GIVEN(index, value, status, text)                 \
  do {                                                    \
    memcpy(given, tensors, sizeof given);                 \
    rvm_value made = value;                               \
    given[index] = made;                                  \
    begin(), E(end);                                      \
    CHECK_FAILS(run_with(given, 5), status, text, error); \
    rvm_value_release(&made);                             \
  } while (0)
  begin(), E(end);
  CHECK_FAILS(run_with(tensors, 4), RVM_ARGUMENT_ERROR, "expected 5 arguments, got 4", error);
  begin(), E(end);
  CHECK_FAILS(run_with(tensors, -1), RVM_ARGUMENT_ERROR, "expected 5 arguments, got -1", error);
  GIVEN(0, int_value(1), RVM_TYPE_ERROR, "argument 0 is not a tensor");
  GIVEN(1, tensor_value(RVM_DTYPE_u64, 1, short_dims), RVM_TYPE_ERROR, "argument 1 does not have the dtype and rank");
  GIVEN(1, tensor_value(RVM_DTYPE_i64, 2, two), RVM_TYPE_ERROR, "argument 1 does not have the dtype and rank");
  GIVEN(1, tensor_value(RVM_DTYPE_i64, 1, short_dims), RVM_SHAPE_ERROR,
        "expected dimension 0 of argument 1 to be 600, got 599");
  begin();
  *word(2) = 7;
  *word(5) = -1;
  E(end);
  CHECK_FAILS(run_with(tensors, 5), RVM_SHAPE_ERROR, "expected dimension 0 of argument 0 to be 7, got 600", error);
}

static void release_nothing(void *unused) { (void)unused; }

/* Constants, host memory and views of them are never written. */
static void outputs_are_the_programs_own(void) {
  static _Alignas(64) float hosts[ELEMENTS + 1];
  const int64_t n[] = {ELEMENTS};
  rvm_value given[5], wrapped, view;
  memcpy(given, tensors, sizeof given);
  MAKE(wrapped, rvm_tensor_wrap(RVM_DTYPE_f32, 1, n, hosts, release_nothing, NULL, &wrapped));
  MAKE(view, rvm_tensor_view(RVM_DTYPE_f32, 1, n, hosts, &wrapped.as.tensor->base, &view));
#define STORES() begin(), E(store, OUT_F32, ZERO_, ONE, 4), E(end)
  given[OUT_F32] = wrapped;
  STORES();
  CHECK_FAILS(run_with(given, 5), RVM_ARGUMENT_ERROR, "output argument 3 must be allocated by the machine", error);
  given[OUT_F32] = view;
  STORES();
  CHECK_FAILS(run_with(given, 5), RVM_ARGUMENT_ERROR, "output argument 3 must be allocated by the machine", error);
  given[IN_F32] = view; /* may be read */
  given[OUT_F32] = tensors[OUT_F32];
  STORES();
  CHECK_OK(run_with(given, 5), error);
  rvm_value_release(&view);
  rvm_value_release(&wrapped);
  rvm_tensor *constant = tensors[OUT_F32].as.tensor;
  constant->base.references = -1;
  STORES();
  CHECK_FAILS(run_with(tensors, 5), RVM_ARGUMENT_ERROR, "output argument 3 must be allocated by the machine", error);
  constant->base.references = 1;
  MAKE(view, rvm_tensor_view(RVM_DTYPE_f32, 1, n, constant->dl.data, &constant->base, &view));
  given[IN_F32] = tensors[IN_F32];
  given[OUT_F32] = view;
  STORES();
  CHECK_OK(run_with(given, 5), error);
  rvm_value_release(&view);
  MAKE(wrapped, rvm_tensor_wrap(RVM_DTYPE_f32, 1, n, (char *)hosts + 2, NULL, NULL, &wrapped));
  given[OUT_F32] = tensors[OUT_F32];
  given[IN_F32] = wrapped;
  STORES();
  CHECK_FAILS(run_with(given, 5), RVM_ARGUMENT_ERROR, "the elements of argument 0 are not aligned", error);
  rvm_value_release(&wrapped);
}

static void tensors_without_elements_have_none(void) {
  rvm_value given[5];
  const int64_t none[] = {0};
  const int32_t dtypes[] = {RVM_DTYPE_f32, RVM_DTYPE_i64, RVM_DTYPE_bool, RVM_DTYPE_f32, RVM_DTYPE_i64};
  for (int i = 0; i < 5; i++) given[i] = tensor_value(dtypes[i], 1, none);
  begin(), E(load, FREE, IN_F32, ZERO_, 4), E(end);
  CHECK_FAILS(run_with(given, 5), RVM_INDEX_ERROR, "outside its buffer", error);
  begin(), E(strips, FREE, ZERO_, s0, 1), E(view, w0, IN_F32, ZERO_, 4), E(end);
  CHECK_OK(run_with(given, 5), error);
  for (int i = 0; i < 5; i++) rvm_value_release(&given[i]);
}

/* A later program that gets the memory of a run finds no addresses in it. */
static void memory_holds_no_addresses_afterwards(void) {
  const uintptr_t secret = (uintptr_t)in / 4096;
  for (int is_parallel = 0; is_parallel < 2; is_parallel++) {
    RUNS(E(parallel, FREE, FREE_2, ONE, ONE, 3, 0, 2), STRIP(ONE), E(end));
    rvm_value kept[16];
    int found = 0, count = 0;
    for (int64_t size = 64 << 8; count < 16; count++, size += 1024) {
      MAKE(kept[count], rvm_storage_new(pool, size, &kept[count]));
      const uintptr_t *words = (const uintptr_t *)(const void *)kept[count].as.storage->bytes;
      for (int64_t i = 0; i < size / 8; i++) found += words[i] / 4096 == secret;
    }
    CHECK_INT(found, 0);
    while (count > 0) rvm_value_release(&kept[--count]);
  }
}

/* ---- parallel loops ---- */

/* out_index[i] = i for [FREE, FREE_2) */
#define PARALLEL(count, grain) E(parallel, FREE, FREE_2, count, grain, 5, 0, 2)
#define ALL_STORES(...)                                                                      \
  PARALLEL(s0, ONE), E(loop, FREE_3, FREE, FREE_2, 4), E(store, OUT_I64, FREE_3, FREE_3, 8), \
      E(next, FREE_3, FREE_2, 2), E(end)

static void parallel_loops_are_whole(void) {
  for (threads = 1; threads <= 3; threads += 2) {
    memset(out_index, 0, ELEMENTS * 8);
    RUNS(ALL_STORES());
    for (int i = 0; i < ELEMENTS; i++) CHECK_INT(out_index[i], i);
    RUNS(PARALLEL(ZERO_, ONE), E(fail, 1, 0, 0, 0), E(jump, 1), E(jump, 1), E(end));
    RUNS(PARALLEL(MINUS, ONE), E(fail, 1, 0, 0, 0), E(jump, 1), E(jump, 1), E(end));
    RUNS(PARALLEL(ONE, ZERO_), E(copy, FREE_3, ONE), E(copy, FREE_3, ONE), E(copy, FREE_3, ONE), E(end));
    FAILS_WITH(RVM_BAD_EXECUTABLE, "parallel loops cannot be nested", E(parallel, FREE, FREE_2, s0, ONE, 3, 0, 0),
               E(parallel, FREE, FREE_2, ONE, ONE, 3, 0, 0), E(end));
    FAILS_WITH(RVM_SHAPE_ERROR, "no values", PARALLEL(s0, ONE), E(fail, RVM_SHAPE_ERROR, 0, 0, 0), E(jump, 1),
               E(jump, 1), E(end));
    /* Views that are made before a parallel loop do not exist in its parts; each part has its own arrays [f, g). */
    LEAVES("strip", STRIP(ONE), E(view, w0, IN_F32, ZERO_, 4), E(parallel, FREE, FREE_2, s0, ONE, 5, 2, 0),
           E(move, v0, w0, 4), E(end));
  }
  threads = 1;
}

/* Another thread changes indices between their check and their use: no unchecked index is used. */
static void indices_are_safe_while_threads_run(void) {
  threads = 3;
  for (int round = 0; round < 20; round++) {
    begin();
    set(FREE_3, 2000);
    E(parallel, FREE, FREE_2, FREE_3, ONE, (uint16_t)(HERE + 8), 0, 0);
    E(strips, FLAG, ZERO_, s0, (uint16_t)(HERE + 1));
    E(view_written, w1, OUT_I64, ZERO_, 8);
    E(mod, FREE_3, FREE, LAST);
    E(iota, w1, FREE_3, ZERO_);
    E(gather, v1, IN_F32, w1, 4, NO);
    E(scatter, OUT_F32, w1, v1, 4);
    E(end);
    E(end);
    CHECK_OK(run_with(tensors, 5), error);
  }
  threads = 1;
}

/* ---- limits ---- */

#define ENDS(...)                                                            \
  do {                                                                       \
    begin();                                                                 \
    __VA_ARGS__;                                                             \
    E(end);                                                                  \
    steps_left = 200000;                                                     \
    CHECK_FAILS(run_with(tensors, 5), RVM_TIMEOUT, "too many steps", error); \
    steps_left = INT64_MAX;                                                  \
  } while (0)

static void every_loop_has_an_end(void) {
  ENDS(E(jump, 0));
  ENDS(E(unless, ZERO_, 0));
  ENDS(E(loop, FREE, ONE, ZERO_, 0));
  ENDS(E(next, FREE, MANY, 0));
  ENDS(E(strips, FREE, ONE, ZERO_, 0));
  ENDS(E(strips, FREE, ZERO_, MANY, 2), E(iota, v0, ONE, ONE), E(next_strip, FREE, MANY, 1));
  ENDS(E(next_strip, FREE, MANY, 0)); /* empty strips */
  ENDS(E(blocks, FREE, ZERO_, MANY, ONE, 2), E(iota, v0, ONE, ONE), E(next_block, FREE, MANY, ONE, 1));
  ENDS(E(blocks, FREE, ZERO_, MANY, ZERO_, 0));
  ENDS(E(parallel, FREE, FREE_2, ONE, ONE, 2, 0, 0), E(end), E(jump, 0));
  ENDS(E(parallel, FREE, FREE_2, ONE, ONE, 3, 0, 0), E(jump, 1), E(end));
  for (threads = 2; threads <= 3; threads++) {
    ENDS(E(parallel, FREE, FREE_2, s0, ONE, 3, 0, 0), E(jump, 1), E(end)); /* in all parts */
    ENDS(E(parallel, FREE, FREE_2, s0, ONE, 4, 0, 0), E(unless, FREE, 3), E(jump, 2),
         E(end)); /* in all parts except the first */
    ends = 1;
    begin(), E(parallel, FREE, FREE_2, s0, ONE, 4, 0, 0), E(unless, FREE, 3), E(jump, 2), E(end), E(end);
    CHECK_FAILS(run_with(tensors, 5), RVM_INTERRUPTED, "interrupted", error);
    ends = 0;
  }
  threads = 1;
}

/* The slowest functions and micro-kernels in sequence: the time between two checks of the limits is bounded. */
static void looks_follow_each_other(void) {
  const uint16_t slow = function_of(8, 8, 2, 0);
  uint16_t slowest = slow;
  for (int32_t i = 0; i < rvm_element_function_count; i++)
    if (rvm_element_functions[i].cost > rvm_element_functions[slowest].cost) slowest = (uint16_t)i;
  CHECK(rvm_element_functions[slowest].cost >= 1000); /* fmod of f64 */
#define LOOKS(least, ...)     \
  do {                        \
    checks = 0;               \
    RUNS(__VA_ARGS__);        \
    CHECK(checks >= (least)); \
  } while (0)
#define THOUSAND_OF(step) \
  for (int i = 0; i < 1000; i++) step
  LOOKS(200, STRIP(MANY); THOUSAND_OF(E(apply, v0, v0, v0, slowest)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(strided, v0, IN_F32, ZERO_, ONE, 4, NO)));
  LOOKS(10, STRIP(MANY), E(iota, v1, ZERO_, ZERO_); THOUSAND_OF(E(gather, v0, IN_F32, v1, 4, NO)));
  LOOKS(10, STRIP(MANY), E(iota, v1, ZERO_, ZERO_); THOUSAND_OF(E(scatter, OUT_F32, v1, v0, 4)));
  LOOKS(10, STRIP(MANY), E(fill, v1, ZERO_, MANY, 1); THOUSAND_OF(E(strided, v0, IN_F32, ZERO_, ONE, 4, v1)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(store_strided, OUT_F32, ZERO_, ZERO_, v0, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(store_strided, OUT_F32, ZERO_, ONE, v0, 4)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(load_rows, v0, IN_F32, ZERO_, ZERO_, ONE, ONE, 4)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(load_rows, v0, IN_F32, ZERO_, ONE, ZERO_, ONE, 4)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(store_rows, OUT_F32, ZERO_, ZERO_, ONE, ONE, v0, 4)));
  LOOKS(10, STRIP(MANY); THOUSAND_OF(E(store_rows, OUT_F32, ZERO_, ONE, ZERO_, ONE, v0, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(iota_rows, v0, ZERO_, ONE, ONE, ONE)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(move, v0, v1, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(move, v0, ONE, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(choose, v0, v1, v1, v1, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(iota, v0, ZERO_, ONE)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(fill, v0, ZERO_, MANY, 4)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(accumulate, v0, v1, ADD_F32)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(fold, FREE, v1, MANY, ADD_F32)));
  LOOKS(1, STRIP(MANY); THOUSAND_OF(E(fold_lanes, FREE, v1, MANY, ADD_F32)));
  LOOKS(100, STRIP(MANY); THOUSAND_OF(E(accumulate, v0, v1, slowest)));
  LOOKS(100, STRIP(MANY); THOUSAND_OF(E(fold, FREE, v1, MANY, slowest)));
  LOOKS(1, THOUSAND_OF(E(apply, FREE, FREE, FREE, slowest)));
  LOOKS(8, kernel_arguments(&k, (uint16_t[]){ARRAY, ZERO_, ARRAY, ZERO_, ONE}, 5);
        THOUSAND_OF(E(invoke, (uint16_t)row_of("rvm_copy_bytes"), 0, 5)));
}

static void micro_kernels_end_with_the_run(void) {
  const uint16_t copy = (uint16_t)row_of("rvm_copy_bytes");
  const uint16_t good[] = {ARRAY, ZERO_, IN_F32, ZERO_, LAST}, bad[] = {ARRAY, MINUS, IN_F32, ZERO_, LAST};
  RUNS(kernel_arguments(&k, good, 5), E(invoke, copy, 0, 5), set(FREE, 100), E(load, FREE, ARRAY, FREE, 4),
       E(store, OUT_F32, ZERO_, FREE, 4));
  CHECK(out[0] == 100);
  LEAVES("buffers", kernel_arguments(&k, bad, 5), E(invoke, copy, 0, 5));
  ENDS(kernel_arguments(&k, good, 5), E(invoke, copy, 0, 5), E(jump, 0));
  steps_left = 1; /* the check is within the micro-kernel */
  begin(), kernel_arguments(&k, good, 5);
  for (int i = 0; i < 8180; i++) E(copy, FREE, ONE);
  E(jump, 0), E(invoke, copy, 0, 5), E(end);
  CHECK_FAILS(run_with(tensors, 5), RVM_TIMEOUT, "too many steps", error);
  steps_left = INT64_MAX;
}

#endif
