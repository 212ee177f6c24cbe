"""A program that defines kernels with a plain loop, parallel and SIMD loops, and a checked index."""

KERNELS = """
kernel doubled(x: f32[n]) -> (out: f32[n]) {
  for i in range(n) { out[i] = x[i] * 2.0 }
}
kernel spread(x: f32[n, m]) -> (out: f32[n]) {
  for i in parallel(n) {
    let sum = 0.0
    for j in simd(m) { sum += x[i, j] }
    out[i] = sum
  }
}
kernel at(x: f32[n], i: i64) -> (out: f32) { out = x[i] }
def sums(x: f32[n, m]) -> f32[n] = kernel spread(x)
def pick(x: f32[n], i: i64) -> f32[] = kernel at(x, i)
"""
