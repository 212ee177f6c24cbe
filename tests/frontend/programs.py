"""Programs that together use every construct of the text form."""

from __future__ import annotations

EVERY_NODE = """
module with (source="tests", version=3)

def helper(x: f32[n, 4]) -> f32[n, 4] = relu(x)

def "a name, quoted"(x: object) with ("two words"=(1, (2.5,), "three", null, f32, true), empty=()) { return x }

def f(x: f32[n, 4], w: f32[4, 4], c: bool) => object {    # a comment
  y = matmul(x, w)
  z = softmax(y, axis=0); zz = softmax(y, axis=-1)
  t = (y, (z,), ())
  s: f32[n, 4] = t.1.0
  u = match_cast(s, f32[m, 4])
  p = packed("test.vm.add", s, u) : f32[n, 4]
  pp: f32[n, 4] = packed_pure("test.pure")
  g = fn (a: f32[k, 4]) -> f32[k, 4] { return relu(a) }
  fact = fn factorial(i: f32[]) -> f32[] {
    return if less(i, const(f32[], 1)) then i else fact(i)
  }
  loop = fn again(i: f32[]) => { return again(i) }
  fu = fused { fa = add(x, y); fb = relu(fa)
               return fb }
  h = @helper
  q = g(h(@helper(s)))
  pair = (fn (a: i64) -> i64 { return a })(3)
  nested = g(x).0(y)
  v = if c then { w1 = relu(x)
                  return w1 } else if true then x else { return x }
  o = const(f32[2, 2], [[1, -2.5], [inf, nan]])
  bits = const(f32[1], "AQDAfw==")
  empty = const(i64[2, 0], [[], []])
  flags = const(bool[2], [true, false])
  i = 3
  j = -2.5
  k = true
  s2 = "text with \\"quotes\\", \\n and \\u00e9"
  d = dtype(f32)
  sh = shape(n, n * 2 + 1, m // 2, min(n, m) % 3, (n + 1) * (m - 1))
  nothing = null
  extremes = (inf, -inf, nan, 1e+20, -9223372036854775808, 5e-324)
  b = builtin.alloc_storage(shape(n, 4), 0, dtype(f32))
  bt: f32[n, 4] = builtin.alloc_tensor(b, 0, shape(n, 4), dtype(f32))
  k1 = kernel add_1(x, y) : f32[n, 4]
  k2: (f32[n, 4], f32[n, 4]) = kernel "a kernel"(x)
  _ = run add_1(x, y, k1)
  _ = kill k1
  _ = builtin.print(x)
  sum = (i + j * 2) - -3 // k % dim(n * m)
  logic = ~(i < 3) | (j != 2.5) & k ^ (i == dim(4))
  bits2 = -i << 2 >> prim.min(i, 1)
  return (@packed("test.f"), @"a name, quoted", fn () = 1, z, zz, u)
}

def types(
  a: f32[...], b: tensor[_, _], c: tensor[...], d: f32[], e: shape[n, 1], f: shape[_, _], g: shape[...],
  h: (f32[n], i64), i: (f64,), j: (), k: (f32[n]) -> f32[n], l: () => (bool) -> object, m: ((i64) -> i64, object),
) -> (f32[n], (i64) => ()) {
  return h
}
"""

STAGES = """
def main(x: f32[n, 4], y: f32[n, 4], c: bool) -> f32[n * 4] {
  s = fn (a: f32[n, 4]) -> f32[n, 4] { return add(a, y) }
  z = if c then s(x) else multiply(relu(x), const(f32[], 2))
  return reshape(softmax(z), shape(n * 4))
}

def other(x: object, d: i64) => (f32[m], object) {
  y = match_cast(x, f32[m])
  return (relu(y), packed("test.note", y, @main, "text"))
}
"""


# Kernels with every form of statement and expression.
KERNELS = """
kernel every(x: f32[n, m], at: i64[l], s: f16) -> (out: f32[n, m], to: i64[l], flag: bool) {
  let acc = 0.0; let count = 0
  for i in simd(n) { acc += if m > 0 then x[i, 0] else 1.0; count -= i }
  for i, j in grid(n, m) { out[i, j] = x[i, j] * acc - f32(s) / 2.0 }
  for i in parallel(1, n) {
    let top = -inf
    for j in simd(m) { top = max(top, abs(x[i - 1, j])) }
    for j in range(m) { out[i, j] += min(exp(top), fma(top, top, 1.0), f32(i // 2 % 3)) }
  }
  for i in range(l) {
    let q = at[i]
    if 0 <= q and q < n and not (m == 0 or q != i) { to[i] = q } else if q > 7 { to[i] = -1 } else { count += 1 }
  }
  flag = count >= l and true
}

def main(x: f32[n, m], at: i64[l]) -> f32[n, m] {
  r = kernel every(x, at, 0.5)
  return r.0
}
"""
