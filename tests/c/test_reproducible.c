/* test_reproducible.c: the software fused multiply-adds have the bits of fmaf and fma, which are exact in every C
   library, and rvm_sin_f32 and rvm_cos_f32 need no others. */
#define RVM_EXACT_FMA

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "check.h"
#include "gemm_f32.h"
#include "kernel_math.h"

enum { ROUNDS = 100000 };

static uint64_t random_bits(void) { /* xorshift */
  static uint64_t state = 88172645463325252u;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return state;
}

/* Returns a float of random sign and mantissa, whose exponent field is from `first` to `last`. */
static float random_f32(uint32_t first, uint32_t last) {
  const uint32_t exponent = first + (uint32_t)(random_bits() >> 33) % (last - first + 1);
  return rvm_f32_of_bits((int32_t)(((uint32_t)(random_bits() >> 32) & 0x807fffffu) | exponent << 23));
}

static int is_same_f32(float a, float b) { return (a != a && b != b) || rvm_bits_of_f32(a) == rvm_bits_of_f32(b); }
static int is_same_f64(double a, double b) { return (a != a && b != b) || rvm_bits_of_f64(a) == rvm_bits_of_f64(b); }

static void check_f32(float a, float b, float c) {
  const float expected = fmaf(a, b, c);
  CHECK(is_same_f32(expected, rvm_exact_fma_f32(a, b, c)));
#ifndef RVM_HAS_FMA
  const rvm_lanes right = b - (rvm_lanes){0};
  rvm_lanes sum = {0};
  for (int i = 0; i < RVM_LANES; i++) sum[i] = c;
  rvm_exact_fma_lanes(a, &right, &sum);
  for (int i = 0; i < RVM_LANES; i++) CHECK(is_same_f32(expected, sum[i]));
#endif
}

static void operands_of_every_exponent(void) {
  for (int i = 0; i < ROUNDS; i++) check_f32(random_f32(0, 255), random_f32(0, 255), random_f32(0, 255));
}

static void sums_that_cancel(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const float a = random_f32(110, 140), b = random_f32(110, 140), product = a * b;
    check_f32(a, b, -product);
    check_f32(a, b, rvm_f32_of_bits(rvm_bits_of_f32(-product) + (int32_t)(random_bits() >> 60) - 8));
    check_f32(a, b, random_f32(90, 150));
  }
}

static void products_of_half_a_unit_of_the_addend(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const float c = random_f32(100, 150);
    int exponent;
    frexpf(c, &exponent);
    const float half = ldexpf(1, exponent - 25);
    check_f32(half, 1, c);
    check_f32(half, -1, c);
    check_f32(rvm_f32_of_bits(rvm_bits_of_f32(half) + 1), 1, c);
    check_f32(rvm_f32_of_bits(rvm_bits_of_f32(half) - 1), 1, c);
    check_f32(half, 1 + 0x1p-23f, c);
    /* half - 2^-46 half: double rounds the sum to the halfway case, from which the exact sum is on one side */
    check_f32(half * (1 + 0x1p-23f), 1 - 0x1p-23f, c);
    check_f32(half * (1 + 0x1p-23f), -(1 - 0x1p-23f), c);
    check_f32(half * (1 + 0x1p-12f), 1 - 0x1p-12f, c);
    check_f32(half * (1 + 0x1p-12f), -(1 - 0x1p-12f), c);
  }
}

static void subnormal_results(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const float c = random_f32(0, 1);
    check_f32(random_f32(0, 70), random_f32(0, 70), c);
    check_f32(random_f32(0, 70), random_f32(57, 117), c);
  }
}

static void results_at_the_largest_number(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const float a = random_f32(188, 254), b = random_f32(188, 254);
    check_f32(a, b, random_f32(254, 254));
    check_f32(a, 1, a);
    check_f32(3.40282347e38f, 1, random_f32(229, 232));
  }
}

static void special_operands(void) {
  const float special[] = {0, -0.0f, 1, -1, INFINITY, -INFINITY, NAN, 0x1p-149f, -0x1p-149f, 3.40282347e38f, 0x1p-126f};
  for (int i = 0; i < COUNT_OF(special); i++)
    for (int j = 0; j < COUNT_OF(special); j++)
      for (int k = 0; k < COUNT_OF(special); k++) check_f32(special[i], special[j], special[k]);
}

/* Products of doubles that are just below half a unit of the addend. */
static void halves_of_doubles(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const double c = 1 + (double)(random_bits() >> 12) * 0x1p-52, half = 0x1p-53;
    const double factors[] = {1 + 0x1p-52, 1 + 0x1p-26, 1 + (double)(random_bits() >> 40) * 0x1p-52};
    for (int j = 0; j < COUNT_OF(factors); j++) {
      const double a = half * factors[j], b = 2 - factors[j];
      CHECK(is_same_f64(fma(a, b, c), rvm_exact_fma_f64(a, b, c)));
      CHECK(is_same_f64(fma(-a, b, c), rvm_exact_fma_f64(-a, b, c)));
    }
  }
}

/* The operands of f64 are those of an argument reduction: a float, and a double of usual size. */
static void doubles(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const double a = (double)fabsf(random_f32(0, 254)), b = 0x1.45f306dc9c883p-1 * (double)(1 + random_bits() % 1000);
    const double product = rint(a * b), c = (double)(random_bits() % 3) * ldexp(1, (int)(random_bits() % 60) - 50);
    CHECK(is_same_f64(fma(a, b, -product), rvm_exact_fma_f64(a, b, -product)));
    CHECK(is_same_f64(fma(a, b, c - product), rvm_exact_fma_f64(a, b, c - product)));
  }
}

static void sine_and_cosine(void) {
  for (int i = 0; i < ROUNDS; i++) {
    const float x = random_f32(0, 254), sine = rvm_sin_f32(x), cosine = rvm_cos_f32(x);
    CHECK(fabs((double)sine - sin((double)x)) <= 0x1p-23 && fabs((double)cosine - cos((double)x)) <= 0x1p-23);
  }
  CHECK(isnan(rvm_sin_f32(INFINITY)) && isnan(rvm_cos_f32(NAN)));
}

int main(void) {
  operands_of_every_exponent();
  sums_that_cancel();
  products_of_half_a_unit_of_the_addend();
  subnormal_results();
  results_at_the_largest_number();
  special_operands();
  halves_of_doubles();
  doubles();
  sine_and_cosine();
  return CHECK_RESULT();
}
