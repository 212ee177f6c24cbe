"""Random well-typed programs, drawn from hypothesis, and what is needed to run and to replay them.

What makes results comparable, by construction:

- f32 tensors hold approximate numbers in [-1, 1].  Every operator on them is continuous and widens no error, so the
  reference and the C kernels stay within a tolerance; nothing is decided by them: no comparison, no rounding, no
  conversion to another dtype.
- f64 tensors hold integers in [-1000, 1000], other dtypes integers that wrap around: exact in every order of
  evaluation.
- f64 scalars are IEEE 754 everywhere and compared bit by bit.
- A function without effects may be left out where its result is not used.  What may fail is therefore in functions
  with effects, or its result is told to the log at once.
- Recursion counts down from a bounded counter, and what a function may cost is bounded.
"""
