"""Random well-typed programs, generated with hypothesis, and functions to run and replay them.

The programs are constructed so that the results of different execution modes are comparable:

- f32 tensors contain approximate numbers in [-1, 1].  Every operator on them is continuous and does not amplify errors,
  so the results of the reference interpreter and of C kernels differ by less than a tolerance.  f32 numbers are never
  compared, rounded or converted to another dtype, so that small differences cannot become large ones.
- f64 tensors contain integers in [-1000, 1000].  Tensors of other dtypes contain integers that wrap around.  Both are
  exact in every order of evaluation.
- Arithmetic on f64 scalars follows IEEE 754 in every mode, and results are compared bit by bit.
- A call of a pure function can be removed if its result is not used.  Operations that can fail therefore occur only in
  functions with side effects, or their result is written to the log at once.
- Recursion counts down from a bounded counter, and the cost of a call is bounded.
"""
