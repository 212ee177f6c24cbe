/* test_micro_kernels.c: micro-kernels of kernel bytecode.  With buffers of exactly the size that a call needs, they
   stay inside the buffers, which the address sanitizer watches.  With smaller buffers or invalid numbers, they
   refuse. */
#include <math.h>
#include <stdint.h>

#include "check.h"
#include "micro_kernels.h"

enum { MOST = RVM_MICRO_KERNEL_ARGUMENTS, LARGEST = 1 << 30 };

static const char *const names[] = {
#define MICRO_KERNEL(name, header, arguments) #name,
#include "micro_kernels.def"
#undef MICRO_KERNEL
};

/* A call.  numbers: for each argument in the order of micro_kernels.def its number, or the number of elements that its
   buffer needs.  kinds: S a size, F any number, f an f32, and buffers of elements of 1, 4 or 8 bytes: b, w, q. */
typedef struct call {
  const char *name, *kinds;
  int64_t numbers[MOST];
} call;

static const call calls[] = {
    {"rvm_tile_f32", "SSSwSSwSwSF", {3, 33, 5, 2 * 7 + 4 * 2 + 1, 7, 2, 4 * 50 + 48, 50, 2 * 60 + 48, 60, 1}},
    {"rvm_tile_f32", "SSSwSSwSwSF", {1, 16, 1, 1, 0, 0, 16, 0, 16, 0, 0}},
    {"rvm_tile_f32", "SSSwSSwSwSF", {6, 5000, 3, 5 * 3 + 3, 3, 1, 2 * 5008 + 5008, 5008, 5 * 5008 + 5008, 5008, 0}},
    {"rvm_tile_f32", "SSSwSSwSwSF", {2, 16, 0, 0, 9, 9, 0, 9, 20 + 16, 20, 0}},
    {"rvm_window_tile_f32", "SSSwqqwSwSF", {3, 33, 5, 1 + 1 + 1, 3, 5, 4 * 50 + 48, 50, 2 * 60 + 48, 60, 1}},
    {"rvm_window_tile_f32", "SSSwqqwSwSF", {96, 64, 512, 1 + 1 + 1, 96, 512, 511 * 64 + 64, 64, 95 * 64 + 64, 64, 0}},
    {"rvm_window_tile_f32", "SSSwqqwSwSF", {1, 16, 0, 0, 1, 0, 0, 16, 16, 16, 0}},
    {"rvm_direct_tile_f32", "SSSwSwqwSF", {3, 33, 5, 2 * 7 + 5, 7, 1 + 48, 5, 2 * 60 + 48, 60, 1}},
    {"rvm_direct_tile_f32", "SSSwSwqwSF", {6, 5000, 512, 5 * 512 + 512, 512, 1 + 5008, 512, 5 * 5008 + 5008, 5008, 0}},
    {"rvm_direct_tile_f32", "SSSwSwqwSF", {1, 16, 0, 0, 9, 0, 0, 16, 16, 0}},
    {"rvm_quantized_tile_f32", "SSSSwSwwbFw", {3, 21, 4, 8, 2 * 23 + 21, 23, 3 * 64, 3 * 64, 3 * 64, 1, 3 * 64}},
    {"rvm_quantized_tile_f32", "SSSSwSwwwFw", {1, 9, 8, 16, 9, 0, 3 * 64, 64, 64, 0, 64}},
    {"rvm_quantized_tile_f32", "SSSSwSwwbFw", {4, 20, 2, 16, 3 * 20 + 20, 20, 2 * 64, 2 * 64, 2 * 64, 1, 4 * 64}},
    {"rvm_dequantized_panel_f32", "wSSSSwwbF", {9 * 64, 16, 9, 4, 8, 4 * 64, 4 * 64, 4 * 64, 1}},
    {"rvm_dequantized_panel_f32", "wSSSSwwwF", {5 * 64, 0, 5, 2, 16, 64, 64, 64, 0}},
    {"rvm_quantized_row_int8", "wwSS", {2 * (16 / 4 + 2), 21, 21, 16}},
    {"rvm_quantized_row_int8", "wwSS", {3 * (32 / 4 + 2), 96, 96, 32}},
    {"rvm_quantized_row_int8", "wwSS", {0, 0, 0, 4}},
    {"rvm_quantized_tile_int8", "SSSSwSwwbFw", {3, 2, 4, 16, 2 * 13 + 12, 13, 4 * 64, 2 * 64, 2 * 64, 1, 3 * 64}},
    {"rvm_quantized_tile_int8", "SSSSwSwwwFw", {1, 1, 8, 4, 3, 0, 64, 64, 64, 0, 64}},
    {"rvm_quantized_tile_int8", "SSSSwSwwbFw", {4, 3, 2, 16, 3 * 18 + 18, 18, 3 * 64, 3 * 64, 3 * 64, 1, 4 * 64}},
    {"rvm_columns_f32",
     "SSSSqqSwwSwSF",
     {3, 9, 20, 2, 2, 2, 4, 1 + 2 * 4 + 1, 1 + 15 * 40 + 32, 40, 13 * 32 + 32, 32, 1}},
    {"rvm_columns_f32",
     "SSSSqqSwwSwSF",
     {7, 7, 16, 600, 600, 600, 1, 1 + 6 + 1, 1 + 12 * 16 + 16, 16, 6 * 16 + 16, 16, 0}},
    {"rvm_columns_f32", "SSSSqqSwwSwSF", {1, 7, 16, 0, 0, 0, 0, 0, 0, 16, 6 * 16 + 16, 16, 0}},
    {"rvm_taps_f32", "SSqwwwF", {70, 3, 3, 3, 1 + 128, 128, 1}},
    {"rvm_taps_f32", "SSqwwwF", {5, 1200, 1200, 1200, 1 + 64, 64, 0}},
    {"rvm_taps_f32", "SSqwwwF", {5, 0, 0, 0, 0, 64, 0}},
    {"rvm_planes_f32",
     "wSSSSSwSSSSSSSqwww",
     {4 + 3 * 15, 4 + 3 * 15, 4, 3, 3, 5, 3 * 4, 2, 2, 1, 1, 1, 1, 1, 1, 3 * 16, 16, 16 + 6}},
    {"rvm_planes_f32",
     "wSSSSSwSSSSSSSqwww",
     {2 * 120, 2 * 120, 0, 2, 10, 12, 2 * 6, 2, 3, 0, 0, 3, 2, 6, 6, 2 * 128, 6 * 128, 130}},
    {"rvm_planes_f32", "wSSSSSwSSSSSSSqwww", {0, 0, 0, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0, 16}},
    /* in place and copied, with more rows than a block has; stride 2; a strip of a row */
    {"rvm_depthwise_rows_f32",
     "wSSSSSwSSSSSSSSSSww",
     {4 * 60 * 5, 4 * 60 * 5, 300, 3, 60, 5, 3 * 9, 3, 3, 1, 1, 1, 1, 0, 60, 0, 5, (3 * 60 + 3) * 5 + 16, 29 * 11}},
    {"rvm_depthwise_rows_f32",
     "wSSSSSwSSSSSSSSSSww",
     {2 * 700, 2 * 700, 0, 2, 20, 35, 2 * 25, 5, 5, 2, 2, 2, 2, 3, 5, 4, 14, (2 * 5 + 3) * 14 + 16, 2 * 38 * 19}},
    {"rvm_depthwise_rows_f32", "wSSSSSwSSSSSSSSSSww", {0, 0, 0, 0, 1, 1, 0, 3, 1, 1, 1, 0, 0, 0, 1, 0, 1, 0, 0}},
    {"rvm_window_rows_f32", "wSwSSSSSSS", {2 * 20 + 12, 20, 2 * 30 + 4 * 2 + 1, 30, 2, 3, 1, 3, 8, 12}},
    {"rvm_window_rows_f32", "wSwSSSSSSS", {20 + 12, 20, 30 + 12, 30, 1, 2, 0, 0, 12, 12}},
    {"rvm_window_rows_f32", "wSwSSSSSSS", {20 + 12, 20, 0, 30, 1, 2, 0, 12, 12, 12}},
    {"rvm_window_rows_f32", "wSwSSSSSSS", {3000000, 3000000, 1, 0, 0, 1, 0, 0, 3000000, 3000000}},
    {"rvm_window_panel_f32", "wSwSSSSSSSSSSSSSSSSS", {20 * 16, 16, 3 * 30, 5, 6, 0, 5, 6, 2, 9,
                                                      1,       20, 3,      3, 1, 1, 1, 1, 1, 1}},
    {"rvm_window_panel_f32", "wSwSSSSSSSSSSSSSSSSS", {18 * 9, 9,  2 * 56, 7, 8, 112, 3, 3, 0, 9,
                                                      0,      18, 3,      3, 2, 2,   1, 1, 2, 2}},
    {"rvm_window_panel_f32",
     "wSwSSSSSSSSSSSSSSSSS",
     {18 * 80, 80, 8 * 70 + 2 * 35, 5, 7, 70, 3, 4, 20, 78, 0, 18, 3, 3, 2, 2, 1, 1, 1, 1}},
    {"rvm_window_panel_f32",
     "wSwSSSSSSSSSSSSSSSSS",
     {4 * 64, 64, 2 * 200 + 2 * 60, 3, 20, 200, 2, 20, 30, 64, 0, 4, 2, 1, 1, 1, 0, 0, 1, 1}},
    {"rvm_window_panel_f32", "wSwSSSSSSSSSSSSSSSSS", {16, 16, 0, 0, 5, 0, 1, 1, 0, 1, 0, 1, 1, 1, 1, 1, 0, 0, 1, 1}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {2 * 4 * 5, 2 * 6 * 7, 2, 6, 7, 4, 5, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {2 * 3 * 3, 2 * 6 * 7, 2, 6, 7, 3, 3, 3, 3, 2, 2, 1, 1, 1, 1}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {3 * 3, 6 * 6, 1, 6, 6, 3, 3, 2, 2, 2, 2, 0, 0, 1, 1}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {4, 64, 1, 8, 8, 2, 2, 4, 4, 4, 4, 0, 0, 1, 1}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {3 * 900, 6 * 1000, 1, 6, 1000, 3, 900, 2, 3, 1, 1, 5, 40, 3, 50}},
    {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {2 * 60000, 1, 1, 1, 1, 2, 60000, 100, 1, 1, 600, 0, 0, 1, 1}},
    {"rvm_average_pool_f32", "wwSSSSSSSSSSSSSF", {2 * 4 * 5, 2 * 6 * 7, 2, 6, 7, 4, 5, 3, 3, 1, 1, 1, 1, 1, 1, 0}},
    {"rvm_average_pool_f32", "wwSSSSSSSSSSSSSF", {2 * 3 * 3, 2 * 6 * 7, 2, 6, 7, 3, 3, 3, 3, 2, 2, 1, 1, 1, 1, 1}},
    {"rvm_average_pool_f32", "wwSSSSSSSSSSSSSF", {3 * 900, 6 * 1000, 1, 6, 1000, 3, 900, 2, 3, 1, 1, 5, 40, 3, 50, 0}},
    {"rvm_copy_bytes", "bbS", {9, 9, 9}},
    {"rvm_copy_bytes", "bbS", {5000000, 5000000, 5000000}},
    {"rvm_transposed_tile", "wwS", {256, 15 * 17 + 16, 17}},
    {"rvm_streamed_tile_f32",
     "SSSwSSwSwSFw",
     {3, 33, 5, 2 * 7 + 4 * 2 + 1, 7, 2, 4 * 50 + 48, 50, 2 * 60 + 48, 60, 1, 0}},
    {"rvm_panel_tile_f32",
     "SSSwSSwSFwSwSFFw",
     {3, 33, 5, 2 * 7 + 4 * 2 + 1, 7, 2, 4 * 50 + 48, 50, 1, 4 * 64 + 48, 64, 2 * 60 + 48, 60, 1, 0, 0}},
    {"rvm_panel_tile_f32", "SSSwSSwSFwSwSFFw", {6, 16, 5, 30, 5, 1, 0, 50, 0, 4 * 16 + 16, 16, 96, 16, 0, 1, 0}},
    {"rvm_panel_tile_f32", "SSSwSSwSFwSwSFFw", {2, 16, 0, 0, 9, 9, 0, 9, 1, 0, 9, 20 + 16, 20, 0, 1, 0}},
    {"rvm_prefetch_rows", "bSSSS", {0, 70, 3, 33, 4}}, /* memory that does not exist is not loaded */
    {"rvm_prefetch_rows", "bSSSS", {0, LARGEST, LARGEST, LARGEST, LARGEST}},
    {"rvm_prefetch_rows", "bSSSS", {0, 70, 3, 33, 0}},
    {"rvm_transposed_elements", "bbSS", {256, 15 * 17 + 16, 17, 1}},
    {"rvm_transposed_elements", "bbSS", {2 * 256, 2 * (15 * 17 + 16), 17, 2}},
    {"rvm_transposed_elements", "bbSS", {8 * 256, 8 * (15 * 17 + 16), 17, 8}},
    {"rvm_tile_bytes", "SSSbSFFwSwS", {3, 17, 7, 2 * 8 + 7, 8, 0x80808080, 1, 40 + 32, 40, 2 * 32 + 32, 32}},
    {"rvm_tile_bytes", "SSSbSFFwSwS", {6, 5000, 8, 5 * 8 + 8, 8, 0, 0, 5008 + 5008, 5008, 5 * 5008 + 5008, 5008}},
    {"rvm_taps_bytes", "SSqwww", {70, 3, 3, 3, 1 + 128, 128}},
    {"rvm_taps_bytes", "SSqwww", {5, 700, 700, 700, 1 + 64, 64}},
    {"rvm_words_of_bytes", "wbSSSSF", {20, 3 * 30 + 19 + 1, 30, 4, 20, 1, 7}},
    {"rvm_words_of_bytes", "wbSSSSF", {20, 30 + 19 * 3 + 1, 30, 2, 20, 3, 7}},
    {"rvm_words_of_bytes", "wbSSSSF", {20, 3 * 30 + 1, 30, 9, 20, 0, 7}},
    {"rvm_words_of_bytes", "wbSSSSF", {300000, 300000, 0, 1, 300000, 1, 0}},
    {"rvm_words_of_line", "wbSFSSSSFF", {20, 30, 30, -3, 5, 4, 20, 2, 9, 1}},
    {"rvm_words_of_line", "wbSFSSSSFF", {20, 30, 30, 100, 5, 3, 20, 1, 9, 1}},
    {"rvm_words_of_line", "wbSFSSSSFF", {300000, 30, 30, -299990, 1, 9, 300000, 3, 9, 1}},
    {"rvm_words_of_line", "wbSFSSSSFF", {20, 0, 0, 0, 1, 1, 20, 1, 9, 1}},
    {"rvm_attention",
     "SSSSwwSSwbSSwSSffFwwww",
     {7, 70, 5, 9, 7 * 5, 69 * 5 + 4 + 1, 5,      1,       70 * 9, 6 * 70 + 69 + 1, 70, 1, 1,
      0, 0,  1, 0, 0,     7 * 128,        5 * 64, 70 * 16, 7 * 16}},
    {"rvm_attention",
     "SSSSwwSSwbSSwSSffFwwww",
     {2,   400, 5, 16, 2 * 5, 399 + 4 * 400 + 1, 1,      400, 400 * 16, 1, 0, 0, 400 + 399 + 1,
      400, 1,   1, 0,  2,     2 * 256,           5 * 64, 0,   2 * 16}},
    {"rvm_attention", "SSSSwwSSwbSSwSSffFwwww", {96, 0, 3, 1, 96 * 3, 0, 3, 1, 0, 0, 0,
                                                 0,  0, 0, 0, 1,      0, 1, 0, 0, 0, 96 * 16}},
    {"rvm_attention",
     "SSSSwwSSwbSSwSSffFwwww",
     {96, 5000, 4, 16, 96 * 4, 4999 * 4 + 3 + 1, 4,      1, 5000 * 16, 1, 0, 0, 1,
      0,  0,    1, 0,  0,      96 * 320,         4 * 64, 0, 96 * 16}},
    {"rvm_winograd_input", "wSSSSSSSSSSwq", {3 * 5 * 6, 3, 5, 6, 1, 1, 1, 3, 1, 5, 16, 16 * (3 * 16 + 16), 1}},
    {"rvm_winograd_input", "wSSSSSSSSSSwq", {2 * 9 * 130, 2, 9, 130, 1, 1, 2, 65, 3, 64, 64, 16 * (2 * 64 + 16), 1}},
    {"rvm_winograd_product", "SSSSwww", {3, 32, 2, 4, 15 * 4 * 2 + 3 * 2, 16 * (2 * 32 + 16), 16 * 3 * 32}},
    {"rvm_winograd_product", "SSSSwww", {6, 64, 1, 6, 15 * 6 + 6, 16 * (64 + 16), 16 * 6 * 64}},
    {"rvm_winograd_output", "SSww", {3, 16, 16 * 3 * 16, 3 * 4 * 16}},
    {"rvm_winograd_plain",
     "wSSSSSSSSSSSSww",
     {3 * 5 * 6, 3, 5, 6, 1, 1, 1, 3, 1, 5, 16, 2, 4, 15 * 4 * 3 + 2 * 3, 2 * 4 * 16}},
    {"rvm_tree_columns_f32", "wwSSSw", {3 * 5, 3 * 2, 3, 2, 4, 4}},
    {"rvm_tree_columns_f64", "qqSSSw", {3 * 5, 3 * 2, 3, 2, 4, 4}},
    {"rvm_trees_f32", "wwSSSwwSqSSFSSSwww", {17, 17 * 4, 17, 3, 5, 5, 5, 4, 7, 7, 5, 0, 1, 0, 0, 0, 0, 0}},
    {"rvm_trees_f32", "wwSSSwwSqSSFSSSwww", {2 * 3, 2 * 2, 2, 1, 20, 20, 20, 2, 3, 3, 4, 1, 3, 2, 0, 0, 0, 2 * 3}},
    {"rvm_trees_f32", "wwSSSwwSqSSFSSSwww", {2 * 3, 2 * 2, 2, 1, 20, 20, 20, 2, 3, 3, 4, 2, 3, 2, 4, 3, 4, 4}},
    {"rvm_trees_f32", "wwSSSwwSqSSFSSSwww", {200, 200 * 4, 200, 3, 4000, 4000, 4000, 10, 7, 7, 5, 2, 1, 0, 0, 0, 0, 0}},
    {"rvm_trees_f64", "qqSSSwwSqSSFSSSwwq", {17, 17 * 4, 17, 3, 5, 5, 5, 4, 2 * 7, 7, 5, 0, 1, 0, 0, 0, 0, 0}},
    {"rvm_trees_f64", "qqSSSwwSqSSFSSSwwq", {2 * 3, 2 * 2, 2, 1, 20, 20, 20, 2, 2 * 3, 3, 4, 2, 3, 2, 4, 3, 4, 4}},
    {"rvm_gemv_f32", "SSwwSwF", {21, 7, 7, 6 * 30 + 21, 30, 21, 1}},
    {"rvm_gemv_f32", "SSwwSwF", {5000, 600, 600, 599 * 5000 + 5000, 5000, 5000, 0}},
    {"rvm_gemv_f32", "SSwwSwF", {4, 0, 0, 0, 0, 4, 0}},
    {"rvm_sort_i64", "qS", {5000, 5000}},
    {"rvm_sort_i64", "qS", {3, 3}},
    {"rvm_sort_i64", "qS", {0, 0}},
    {"rvm_keep_least_i64", "qSFqS", {30, 30, 0, 5000, 5000}},
    {"rvm_keep_least_i64", "qSFqS", {30, 30, 1, 70000, 70000}},
    {"rvm_keep_least_i64", "qSFqS", {0, 0, 0, 20, 20}},
    {"rvm_keep_least_i64", "qSFqS", {7, 7, 0, 0, 0}},
    {"rvm_multiply_adds", "wSff", {192, 3, 1, 1}},
    {"rvm_multiply_adds", "wSff", {192, 30000, 0, 1}},
};

/* ---- calls with a given buffer size ---- */

static int64_t work, portions, most_work, portions_allowed;

static int spend(void *host, int64_t some) {
  (void)host;
  work += some;
  if (some > most_work) most_work = some;
  return portions++ < portions_allowed;
}

static int64_t bytes_of(char kind) { return kind == 'b' ? 1 : kind == 'w' ? 4 : kind == 'q' ? 8 : 0; }

static const rvm_micro_kernel *kernel_of(const call *from) {
  for (int32_t i = 0; i < rvm_micro_kernel_count; i++)
    if (strcmp(names[i], from->name) == 0) return &rvm_micro_kernels[i];
  abort();
}

/* Allocates the arguments of a call, with buffers of exactly the sizes that it states.  The second element of each
   buffer of 8-byte elements is 1, all others are 0. */
static void make(const call *from, rvm_micro_argument *arguments) {
  for (int i = 0; from->kinds[i]; i++) {
    const int64_t bytes = bytes_of(from->kinds[i]), number = from->numbers[i];
    arguments[i] = (rvm_micro_argument){.number = bytes ? 0 : number, .f32 = (float)number, .bytes = bytes * number};
    if (!bytes) continue;
    arguments[i].address = calloc((size_t)(bytes * number) + 1, 1);
    if (from->kinds[i] == 'q' && number > 1) ((int64_t *)(void *)arguments[i].address)[1] = 1;
  }
}

static void release(const call *from, rvm_micro_argument *arguments) {
  for (int i = 0; from->kinds[i]; i++)
    if (bytes_of(from->kinds[i])) free(arguments[i].address);
}

static int run(const call *from, const rvm_micro_argument *arguments) {
  const rvm_micro_watch watch = {.spend = spend};
  work = portions = most_work = 0;
  return kernel_of(from)->run(arguments, &watch);
}

#define EXPECT(row, argument, description, got, expected)                                                      \
  do {                                                                                                         \
    const int got_ = (got);                                                                                    \
    if (got_ == (expected)) break;                                                                             \
    printf("call %d, %s, argument %d, %s: expected %d, got %d\n", row, calls[row].name, argument, description, \
           expected, got_);                                                                                    \
    checks_failed++;                                                                                           \
  } while (0)

static void every_micro_kernel_is_called(void) {
  for (int32_t i = 0; i < rvm_micro_kernel_count; i++) {
    int is_called = 0;
    for (int row = 0; row < COUNT_OF(calls); row++) {
      if (strcmp(calls[row].name, names[i]) != 0) continue;
      is_called = 1;
      for (int k = 0; rvm_micro_kernels[i].arguments[k] || calls[row].kinds[k]; k++) {
        const char letter = rvm_micro_kernels[i].arguments[k], kind = calls[row].kinds[k];
        CHECK((letter == 'p' || letter == 'P') == (bytes_of(kind) > 0) && (letter == 'f') == (kind == 'f'));
      }
    }
    CHECK(is_called);
    CHECK(strlen(rvm_micro_kernels[i].arguments) <= MOST);
  }
}

/* Runs a call, ends it at several portions, then changes one argument at a time: accesses outside buffers are
   refused. */
static void calls_have_the_room_that_they_need(int row) {
  const call *from = &calls[row];
  rvm_micro_argument arguments[MOST];
  make(from, arguments);
  portions_allowed = INT64_MAX;
  EXPECT(row, -1, "as it is", run(from, arguments), RVM_MICRO_DONE);
  CHECK(most_work <= 4 * RVM_MICRO_PORTION);
  const int64_t whole = portions;
  for (portions_allowed = 0; portions_allowed < whole; portions_allowed += 1 + whole / 8)
    EXPECT(row, (int)portions_allowed, "ended", run(from, arguments), RVM_MICRO_ENDED);
  portions_allowed = INT64_MAX;
  for (int i = 0; from->kinds[i]; i++) {
    rvm_micro_argument *changed = &arguments[i];
    const rvm_micro_argument good = *changed;
    const int64_t bytes = bytes_of(from->kinds[i]);
    if (bytes && from->numbers[i] > 0) {
      changed->bytes--;
      EXPECT(row, i, "a byte less", run(from, arguments), RVM_MICRO_REFUSED);
      *changed = good, changed->bytes = 0;
      EXPECT(row, i, "no bytes", run(from, arguments), RVM_MICRO_REFUSED);
      const int64_t places[] = {-1, 1, good.bytes, INT64_MAX, INT64_MIN, INT64_MIN + 1, INT64_MAX / bytes};
      for (int k = 0; k < COUNT_OF(places); k++) {
        *changed = good, changed->number = places[k];
        EXPECT(row, i, "another place", run(from, arguments), RVM_MICRO_REFUSED);
      }
      if (bytes > 1) {
        *changed = good, changed->address++;
        EXPECT(row, i, "not aligned", run(from, arguments), RVM_MICRO_REFUSED);
      }
    }
    if (from->kinds[i] == 'S') {
      const int64_t numbers[] = {-1, LARGEST + 1, INT64_MAX, INT64_MIN};
      for (int k = 0; k < COUNT_OF(numbers); k++) {
        changed->number = numbers[k];
        EXPECT(row, i, "a wrong size", run(from, arguments), RVM_MICRO_REFUSED);
      }
    }
    *changed = good;
  }
  release(from, arguments);
}

/* Changes a size by 0 to 3, or to a large number: the call stays inside its buffers. */
static void calls_stay_inside_with_other_sizes(int row) {
  const call *from = &calls[row];
  rvm_micro_argument arguments[MOST];
  uint32_t random = 1;
  make(from, arguments);
  portions_allowed = 2;
  for (int round = 0; round < 500; round++) {
    rvm_micro_argument changed[MOST];
    memcpy(changed, arguments, sizeof changed);
    for (int times = 1 + round % 4, count = (int)strlen(from->kinds); times > 0; times--) {
      random = random * 1664525 + 1013904223;
      const int i = (int)(random >> 8) % count, by = (int)(random >> 20) % 8;
      if (bytes_of(from->kinds[i]))
        changed[i].number += by - 3;
      else if (from->kinds[i] != 'f')
        changed[i].number = by == 7   ? LARGEST
                            : by == 6 ? 0
                            : by == 5 ? changed[i].number * 2
                                      : changed[i].number + by - 2;
    }
    const int status = run(from, changed);
    CHECK(status == RVM_MICRO_REFUSED || status == RVM_MICRO_DONE || status == RVM_MICRO_ENDED);
  }
  release(from, arguments);
}

/* ---- invalid numbers ---- */

static void refused(const char *name, int nth, int argument, int64_t number) {
  for (int row = 0; row < COUNT_OF(calls); row++) {
    rvm_micro_argument arguments[MOST];
    if (strcmp(calls[row].name, name) != 0 || nth-- != 0) continue;
    make(&calls[row], arguments);
    portions_allowed = 1000;
    arguments[argument].number = number;
    EXPECT(row, argument, "a number that is refused", run(&calls[row], arguments), RVM_MICRO_REFUSED);
    release(&calls[row], arguments);
    return;
  }
  abort();
}

static void numbers_are_checked(void) {
  refused("rvm_tile_f32", 1, 0, 0);
  refused("rvm_tile_f32", 1, 0, 7);
  refused("rvm_tile_f32", 1, 1, 0);
  refused("rvm_panel_tile_f32", 1, 0, 0);
  refused("rvm_panel_tile_f32", 1, 0, 7);
  refused("rvm_panel_tile_f32", 1, 1, 0);
  refused("rvm_window_tile_f32", 1, 0, 513);
  refused("rvm_window_tile_f32", 1, 2, 513);
  refused("rvm_direct_tile_f32", 1, 0, 0);
  refused("rvm_direct_tile_f32", 1, 0, 7);
  refused("rvm_direct_tile_f32", 1, 1, 0);
  refused("rvm_direct_tile_f32", 1, 2, 513);
  refused("rvm_planes_f32", 0, 2, 5);                      /* first */
  refused("rvm_planes_f32", 0, 4, 0);                      /* height */
  refused("rvm_planes_f32", 0, 7, 513);                    /* window_height */
  refused("rvm_planes_f32", 0, 9, (1 << 16) + 1);          /* pad_y */
  refused("rvm_planes_f32", 0, 13, 65);                    /* taps */
  refused("rvm_depthwise_rows_f32", 0, 2, 301);            /* first */
  refused("rvm_depthwise_rows_f32", 0, 4, 0);              /* height */
  refused("rvm_depthwise_rows_f32", 0, 7, 4);              /* window_height */
  refused("rvm_depthwise_rows_f32", 0, 8, 0);              /* window_width */
  refused("rvm_depthwise_rows_f32", 0, 8, 8);              /* window_width */
  refused("rvm_depthwise_rows_f32", 0, 9, 3);              /* stride_y */
  refused("rvm_depthwise_rows_f32", 0, 10, 0);             /* stride_x */
  refused("rvm_depthwise_rows_f32", 0, 10, 3);             /* stride_x */
  refused("rvm_depthwise_rows_f32", 0, 11, (1 << 16) + 1); /* pad_y */
  refused("rvm_depthwise_rows_f32", 0, 13, 2);             /* row */
  refused("rvm_depthwise_rows_f32", 0, 15, 2);             /* column */
  refused("rvm_quantized_tile_f32", 0, 0, 0);
  refused("rvm_quantized_tile_f32", 0, 0, 5);
  refused("rvm_quantized_tile_f32", 0, 2, 3);
  refused("rvm_quantized_tile_f32", 0, 3, 0);
  refused("rvm_quantized_tile_f32", 0, 3, 12); /* no multiple of 32 / bits */
  refused("rvm_dequantized_panel_f32", 0, 1, 4);
  refused("rvm_quantized_row_int8", 0, 3, 0);
  refused("rvm_quantized_row_int8", 0, 3, 6);
  refused("rvm_quantized_tile_int8", 0, 0, 0);
  refused("rvm_quantized_tile_int8", 0, 0, 5);
  refused("rvm_quantized_tile_int8", 0, 2, 16);
  refused("rvm_quantized_tile_int8", 0, 3, 0);
  refused("rvm_tile_bytes", 0, 0, 0);
  refused("rvm_tile_bytes", 0, 0, 7);
  refused("rvm_tile_bytes", 0, 1, 0);
  refused("rvm_columns_f32", 2, 0, 0);
  refused("rvm_columns_f32", 2, 0, 8);
  refused("rvm_window_rows_f32", 0, 6, 4);
  refused("rvm_window_rows_f32", 0, 7, 9);
  refused("rvm_window_rows_f32", 0, 8, 13);
  refused("rvm_window_panel_f32", 0, 3, LARGEST);
  refused("rvm_window_panel_f32", 0, 6, 0);
  refused("rvm_window_panel_f32", 0, 7, 0);
  refused("rvm_window_panel_f32", 0, 9, 17);
  refused("rvm_window_panel_f32", 0, 12, 0);
  refused("rvm_window_panel_f32", 0, 12, LARGEST);
  refused("rvm_window_panel_f32", 0, 13, 0);
  refused("rvm_window_panel_f32", 0, 15, 0);
  for (int i = 8; i <= 14; i++)
    if (i < 11 || i > 12) {
      refused("rvm_max_pool_f32", 0, i, 0);
      refused("rvm_average_pool_f32", 0, i, 0);
    }
  refused("rvm_max_pool_f32", 0, 8, 513);
  refused("rvm_max_pool_f32", 0, 14, 256);
  refused("rvm_max_pool_f32", 0, 2, LARGEST); /* the product of sizes is too large */
  refused("rvm_max_pool_f32", 0, 3, LARGEST);
  refused("rvm_max_pool_f32", 0, 7, 1 << 17);
  refused("rvm_words_of_bytes", 0, 3, 0);
  refused("rvm_words_of_line", 0, 5, 0);
  refused("rvm_words_of_line", 0, 7, 0); /* the step is a divisor */
  refused("rvm_words_of_line", 0, 3, LARGEST + 1);
  refused("rvm_words_of_line", 0, 3, -LARGEST - 1);
  refused("rvm_attention", 2, 0, 97);
  refused("rvm_attention", 2, 7, 2); /* neither stride is 1 */
  refused("rvm_attention", 2, 2, LARGEST);
  refused("rvm_winograd_input", 0, 6, 0);
  refused("rvm_winograd_input", 0, 6, (1 << 20) + 1);
  refused("rvm_winograd_input", 0, 7, 0);
  refused("rvm_winograd_input", 0, 10, 17);
  refused("rvm_winograd_input", 0, 10, 80);
  refused("rvm_winograd_input", 0, 9, 17);
  refused("rvm_winograd_product", 0, 0, 0);
  refused("rvm_winograd_product", 0, 0, 7);
  refused("rvm_winograd_product", 0, 1, 0);
  refused("rvm_winograd_product", 0, 1, 24);
  refused("rvm_winograd_product", 0, 1, 80);
}

/* Refuses sizes whose products exceed an int64, and work that would take too long, even if it needs no memory. */
static void too_much_is_refused(void) {
  const call much[] = {
      {"rvm_winograd_input", "wSSSSSSSSSSwq", {0, LARGEST, LARGEST, LARGEST, 0, 0, 1, 1, 0, 0, 0, 256, 1}},
      {"rvm_winograd_input", "wSSSSSSSSSSwq", {0, LARGEST, 0, 0, 0, 0, 1, 1, 0, 0, 0, 256, 1}},
      {"rvm_winograd_plain", "wSSSSSSSSSSSSww", {0, LARGEST, 0, 0, 0, 0, 1, 1, 0, 0, 0, LARGEST, LARGEST, 0, 0}},
      {"rvm_winograd_plain", "wSSSSSSSSSSSSww", {0, 200000, 1, 0, 0, 0, 1, 1, 0, 1, 16, LARGEST, LARGEST, 0, 0}},
      {"rvm_winograd_product", "SSSSwww", {1, 16, LARGEST, LARGEST, 0, 0, 0}},
      {"rvm_winograd_output", "SSww", {LARGEST, LARGEST, 0, 0}},
      {"rvm_winograd_output", "SSww", {LARGEST, 0, 0, 0}},
      {"rvm_window_rows_f32", "wSwSSSSSSS", {0, 0, 0, 0, 0, LARGEST, 0, 0, LARGEST, LARGEST}},
      {"rvm_window_panel_f32", "wSwSSSSSSSSSSSSSSSSS", {0, 1 << 20, 0, 1, 1, 0, 1, 1, 0, 1,
                                                        0, 1 << 20, 1, 1, 1, 1, 0, 0, 1, 1}},
      {"rvm_window_panel_f32", "wSwSSSSSSSSSSSSSSSSS", {16, 16, 1,       1,       1, 0, 1, 16, 0, 16,
                                                        0,  1,  1 << 15, 1 << 15, 1, 1, 0, 0,  1, 1}},
      {"rvm_attention", "SSSSwwSSwbSSwSSffFwwww", {1, LARGEST, 0, 0, 0, 0, 0, 1,    0, 1, 0,
                                                   0, 1,       0, 0, 1, 0, 0, 1024, 0, 0, 0}},
  };
  for (int i = 0; i < COUNT_OF(much); i++) {
    rvm_micro_argument arguments[MOST];
    make(&much[i], arguments);
    portions_allowed = INT64_MAX;
    CHECK_INT(run(&much[i], arguments), RVM_MICRO_REFUSED);
    CHECK_INT(work, 0);
    release(&much[i], arguments);
  }
}

/* Long work can be ended between two portions. */
static void portions_are_small(void) {
  const call much[] = {
      {"rvm_tile_f32", "SSSwSSwSwSF", {6, 64, LARGEST, 1, 0, 0, 64, 0, 64, 0, 0}},
      {"rvm_tile_f32", "SSSwSSwSwSF", {6, 4096, 1 << 20, 1, 0, 0, 4096, 0, 4096, 0, 0}},
      {"rvm_direct_tile_f32", "SSSwSwqwSF", {6, 1 << 20, 512, 512, 0, 1 + (1 << 20), 512, 1 << 20, 0, 0}},
      {"rvm_tile_bytes", "SSSbSFFwSwS", {1, 16, 1 << 20, 1 << 20, 0, 0, 1, 16, 0, 16, 0}},
      {"rvm_columns_f32", "SSSSqqSwwSwSF", {7, LARGEST, 16, 600, 600, 600, 0, 2, 17, 0, 16, 0, 0}},
      {"rvm_taps_f32", "SSqwwwF", {100000, 2000, 2000, 2000, 1 + 100032, 100032, 0}},
      {"rvm_window_rows_f32", "wSwSSSSSSS", {100, 0, 100, 0, 1, LARGEST, 0, 0, 100, 100}},
      {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {1 << 20, 1, 1, 1, 1, 1 << 10, 1 << 10, 100000, 1, 1, 600, 0, 0, 1, 1}},
      {"rvm_max_pool_f32", "wwSSSSSSSSSSSSS", {1 << 20, 1, 1 << 18, 0, 1, 4, 1, 100000, 1, 1, 1, 0, 0, 1, 1}},
      {"rvm_attention", "SSSSwwSSwbSSwSSffFwwww", {96, 1 << 16, 64, 0, 96 * 64, 64, 0, 1,        0,       1, 0,
                                                   0,  1,       0,  0, 1,       0,  0, 96 * 320, 64 * 64, 0, 0}},
  };
  for (int i = 0; i < COUNT_OF(much); i++) {
    rvm_micro_argument arguments[MOST];
    make(&much[i], arguments);
    portions_allowed = 1;
    CHECK_INT(run(&much[i], arguments), RVM_MICRO_ENDED);
    CHECK_INT(portions, 2);
    CHECK(most_work < 16 * RVM_MICRO_PORTION); /* six rows of attention are not split */
    release(&much[i], arguments);
  }
}

/* The memory that a tile loads in advance may be anywhere, because the sums do not depend on it. */
static void memory_ahead_may_be_anywhere(void) {
  const struct {
    call call;
    int ahead; /* the index of the argument */
  } tiles[] = {
      {{"rvm_streamed_tile_f32", "SSSwSSwSwSFw", {6, 16, 3, 18, 3, 1, 48, 16, 96, 16, 0, 48}}, 11},
      {{"rvm_panel_tile_f32", "SSSwSSwSFwSwSFFw", {6, 16, 3, 18, 3, 1, 0, 16, 0, 48, 16, 96, 16, 0, 1, 48}}, 15},
      {{"rvm_prefetch_rows", "bSSSS", {(2 * 70 + 33) * 4, 70, 3, 33, 4}}, 0},
  };
  const int64_t places[] = {0, 1, -1, 48, INT64_MAX, INT64_MIN};
  portions_allowed = INT64_MAX;
  for (int t = 0; t < COUNT_OF(tiles); t++) {
    rvm_micro_argument arguments[MOST];
    make(&tiles[t].call, arguments);
    for (int i = 0; i < COUNT_OF(places); i++) {
      arguments[tiles[t].ahead].number = places[i];
      CHECK_INT(run(&tiles[t].call, arguments), RVM_MICRO_DONE);
    }
    release(&tiles[t].call, arguments);
  }
}

/* ---- offsets that are changed or invalid ---- */

/* The sums overwrite the offsets: the offsets that are used are those that were checked. */
static void offsets_may_be_overwritten(void) {
  static _Alignas(64) char memory[1 << 16];
  float weights[64], x[4096];
  const rvm_micro_watch watch = {.spend = spend};
  for (int i = 0; i < 64; i++) weights[i] = 1e30f;
  for (int i = 0; i < 4096; i++) x[i] = 1e8f;
  portions_allowed = INT64_MAX;
  rvm_micro_argument arguments[MOST] = {{.number = 2000},
                                        {.number = 64},
                                        {.address = memory, .bytes = sizeof memory},
                                        {.address = (char *)weights, .bytes = sizeof weights},
                                        {.address = (char *)x, .bytes = sizeof x},
                                        {.address = memory, .bytes = sizeof memory},
                                        {.number = 0}};
  const call taps = {.name = "rvm_taps_f32"}, byte_taps = {.name = "rvm_taps_bytes"};
  CHECK_INT(kernel_of(&taps)->run(arguments, &watch), RVM_MICRO_DONE);
  memset(memory, 0, sizeof memory);
  CHECK_INT(kernel_of(&byte_taps)->run(arguments, &watch), RVM_MICRO_DONE);
  memset(memory, 0, sizeof memory);
  rvm_micro_argument columns[MOST] = {{.number = 1},
                                      {.number = 14},
                                      {.number = 64},
                                      {.number = 64},
                                      {.address = memory, .bytes = sizeof memory},
                                      {.address = memory, .bytes = sizeof memory},
                                      {.number = 1},
                                      {.address = (char *)weights, .bytes = sizeof weights},
                                      {.address = (char *)x, .bytes = sizeof x},
                                      {.number = 64},
                                      {.address = memory, .bytes = sizeof memory},
                                      {.number = 64},
                                      {.number = 0}};
  const call the_columns = {.name = "rvm_columns_f32"};
  CHECK_INT(kernel_of(&the_columns)->run(columns, &watch), RVM_MICRO_DONE);
}

/* Source and destination of a copy must not overlap. */
static void copies_do_not_overlap(void) {
  const struct {
    const char *name;
    int nth, to, from;
  } rows[] = {{"rvm_window_rows_f32", 1, 0, 2},
              {"rvm_window_panel_f32", 0, 0, 2},
              {"rvm_attention", 0, 19, 5},
              {"rvm_attention", 0, 20, 8}};
  for (int i = 0; i < COUNT_OF(rows); i++)
    for (int row = 0, nth = rows[i].nth; row < COUNT_OF(calls); row++) {
      if (strcmp(calls[row].name, rows[i].name) != 0 || nth-- != 0) continue;
      rvm_micro_argument arguments[MOST];
      make(&calls[row], arguments);
      portions_allowed = INT64_MAX;
      const rvm_micro_argument to = arguments[rows[i].to], from = arguments[rows[i].from];
      rvm_micro_argument both = {.address = calloc((size_t)(to.bytes + from.bytes) + 64, 1),
                                 .bytes = to.bytes + from.bytes};
      const int64_t ends[] = {to.bytes / 4, to.bytes / 4 - 1, 0};
      for (int k = 0; k < COUNT_OF(ends); k++) {
        arguments[rows[i].to] = arguments[rows[i].from] = both;
        arguments[rows[i].from].number = ends[k];
        EXPECT(row, k, "overlapping, or just not", run(&calls[row], arguments),
               k == 0 ? RVM_MICRO_DONE : RVM_MICRO_REFUSED);
        arguments[rows[i].from].number = 0;
        arguments[rows[i].to].number = k == 0 ? from.bytes / 4 : k == 1 ? from.bytes / 4 - 1 : 0;
        EXPECT(row, k, "overlapping, or just not", run(&calls[row], arguments),
               k == 0 ? RVM_MICRO_DONE : RVM_MICRO_REFUSED);
      }
      free(both.address);
      arguments[rows[i].to] = to, arguments[rows[i].from] = from;
      release(&calls[row], arguments);
    }
}

static void offsets_are_checked(void) {
  const struct {
    const char *name;
    int nth, argument; /* the index in the table of calls, and the argument of its offsets */
  } rows[] = {{"rvm_columns_f32", 0, 4}, {"rvm_columns_f32", 0, 5}, {"rvm_columns_f32", 1, 4},
              {"rvm_columns_f32", 1, 5}, {"rvm_taps_f32", 0, 2},    {"rvm_taps_f32", 1, 2},
              {"rvm_taps_bytes", 0, 2},  {"rvm_taps_bytes", 1, 2}};
  const int64_t wrong[] = {-1, 2, LARGEST, -LARGEST, LARGEST + 1, -LARGEST - 1, INT64_MAX, INT64_MIN};
  for (int i = 0; i < COUNT_OF(rows); i++)
    for (int row = 0, nth = rows[i].nth; row < COUNT_OF(calls); row++) {
      if (strcmp(calls[row].name, rows[i].name) != 0 || nth-- != 0) continue;
      rvm_micro_argument arguments[MOST];
      make(&calls[row], arguments);
      portions_allowed = INT64_MAX;
      int64_t *numbers = (int64_t *)(void *)arguments[rows[i].argument].address;
      for (int k = 0; k < COUNT_OF(wrong); k++) {
        const int64_t last = calls[row].numbers[rows[i].argument] - 1;
        numbers[last] = wrong[k];
        EXPECT(row, k, "a wrong offset", run(&calls[row], arguments), RVM_MICRO_REFUSED);
        numbers[last] = 0;
      }
      release(&calls[row], arguments);
    }
}

int main(void) {
  every_micro_kernel_is_called();
  for (int row = 0; row < COUNT_OF(calls); row++) {
    calls_have_the_room_that_they_need(row);
    calls_stay_inside_with_other_sizes(row);
  }
  numbers_are_checked();
  too_much_is_refused();
  portions_are_small();
  memory_ahead_may_be_anywhere();
  offsets_may_be_overwritten();
  copies_do_not_overlap();
  offsets_are_checked();
  return CHECK_RESULT();
}
