/** The elements of a tensor.  i64 and u64 are bigints.  f16 and bf16 are the bits of the numbers. */
export type TensorData =
  | Int8Array
  | Int16Array
  | Int32Array
  | BigInt64Array
  | Uint8Array
  | Uint8ClampedArray
  | Uint16Array
  | Uint32Array
  | BigUint64Array
  | Float32Array
  | Float64Array
  | string[];

/** The name of a dtype.  Elements of less than 8 bits, and floats of 8 bits, are in a Uint8Array, one in each byte. */
export type Dtype =
  | "bool" | "i8" | "i16" | "i32" | "i64" | "u8" | "u16" | "u32" | "u64" | "f32" | "f64" | "f16" | "bf16"
  | "f8e4m3fn" | "f8e4m3fnuz" | "f8e5m2" | "f8e5m2fnuz" | "f8e8m0fnu" | "f6e2m3fn" | "f6e3m2fn" | "f4e2m1fn"
  | "i4" | "u4" | "i2" | "u2" | "str";

/** An n-dimensional array: its elements in row-major order, its dimensions, and the name of its dtype. */
export class Tensor {
  constructor(data: TensorData, shape: number[], dtype: Dtype);
  data: TensorData;
  shape: number[];
  dtype: Dtype;
}

/** The value of a shape, which differs from a tuple of integers. */
export class Shape extends Array<number> {}

/** A list of the program, which differs from a tuple. */
export class List extends Array<Output> {}

/** A function value that a run returned.  It belongs to its model. */
export class Callable {
  private constructor();
  /** Call the function with positional arguments. */
  call(...inputs: Input[]): Promise<Output>;
  /** Release the function. */
  dispose(): void;
}

/** A tensor as a plain object.  Without `dtype`, the class of `data` determines it. */
export interface TensorLike {
  data: TensorData;
  shape: readonly number[];
  dtype?: Dtype;
}

/**
 * An argument.  A typed array is a tensor with one axis.  A bigint is an int, a number is a float or, if the program
 * states type i64, an int.  An array is a tuple.
 */
export type Input =
  | TensorLike
  | Exclude<TensorData, string[]>
  | number
  | bigint
  | boolean
  | string
  | null
  | Shape
  | Callable
  | readonly Input[];

/** A result.  An int is a bigint, a tuple is an array, and a dtype is its name. */
export type Output = Tensor | bigint | number | boolean | string | null | Shape | List | Callable | Output[];

/**
 * Return a tensor.  Without `shape`, it has one axis.  Without `dtype`, the class of `data` determines it; an array of
 * strings has dtype "str".
 */
export function tensor(data: TensorData, shape?: readonly number[], dtype?: Dtype): Tensor;

/** A parameter of a function, with the type that the program states, such as "f32[n, 4]". */
export interface Parameter {
  name: string;
  type: string;
}

export interface FunctionInfo {
  name: string;
  parameters: Parameter[];
  /** The type of the result. */
  result: string;
}

/** A tensor or storage in the memory of the model. */
export interface Place {
  kind: "tensor" | "storage";
  address: number;
  bytes: number;
  dtype?: Dtype;
  shape?: number[];
}

/** A recorded call of a kernel or packed function, with null for arguments that are neither tensors nor storages. */
export interface Call {
  name: string;
  kind: "kernel" | "packed";
  milliseconds: number;
  arguments: (Place | null)[];
  result: Place | null;
}

export interface LoadOptions {
  /** The module relvm.wasm, for executables: a URL, a path, the bytes, or a compiled module.  Default: beside relvm.js. */
  runtime?: string | URL | ArrayBuffer | ArrayBufferView | Response | Blob | WebAssembly.Module;
  /** Bytes that a run may have allocated at a time, including its inputs.  0: no limit. */
  maxBytes?: number;
  /** Steps of a run.  0: no limit. */
  maxSteps?: number;
  /** Time of a run.  0: no limit. */
  maxMilliseconds?: number;
  /** Size of the value stack in values (65536). */
  stackValues?: number;
  /** Depth of nested calls (16384). */
  callDepth?: number;
  /** Whether to verify the checksum of the weights (false).  The other parts of a file are always verified. */
  checkData?: boolean;
  /** Called with the arguments of the program's calls of vm.builtin.print. */
  print?: (...values: Output[]) => void;
}

/** A loaded model.  `load` creates it. */
export class Model {
  private constructor();
  /** The public functions. */
  readonly functions: FunctionInfo[];
  /** The size of the memory of this model in bytes. */
  readonly memoryBytes: number;
  /** Call a function.  `inputs` is an array of its arguments, or an object that names them.  Outputs are copies. */
  run(name: string, inputs?: readonly Input[] | Record<string, Input>): Promise<Output>;
  /**
   * Call a function, and record the calls of kernels and packed functions that it makes: their times, and the places of
   * their tensors in memory.  The observed run is slower.
   */
  profile(name: string, inputs?: readonly Input[] | Record<string, Input>): Promise<{ result: Output; calls: Call[] }>;
  /** Like `run`, without a promise. */
  runSync(name: string, inputs?: readonly Input[] | Record<string, Input>): Output;
  /** Seed the random number generator of the model. */
  seed(seed: number | bigint): void;
  /** Release the memory of the model, which cannot be used afterwards. */
  dispose(): void;
}

/**
 * Load a model: an executable (.rvm), or a WebAssembly module that `relvm compile --target wasm32` made.
 *
 * source: a path or file: URL in Node.js, a URL, a Response, a Blob, or the bytes.
 */
export function load(
  source: string | URL | ArrayBuffer | ArrayBufferView | Response | Blob | WebAssembly.Module,
  options?: LoadOptions,
): Promise<Model>;

/** Return the bits of the 16-bit float (f16) that is nearest to each number. */
export function toFloat16(numbers: ArrayLike<number>): Uint16Array;
/** Return the numbers of 16-bit floats (f16), given their bits. */
export function fromFloat16(bits: ArrayLike<number>): Float32Array;

/** The base class of all errors of relvm. */
export class RelvmError extends Error {
  /** The name of the status code, such as "SHAPE_ERROR". */
  readonly status: string;
  /** The active functions of the program, one on each line. */
  readonly trace: string;
}
export class RelvmTypeError extends RelvmError {}
export class RelvmShapeError extends RelvmError {}
export class RelvmArgumentError extends RelvmError {}
export class RelvmIndexError extends RelvmError {}
export class RelvmArithmeticError extends RelvmError {}
export class RelvmAssertionError extends RelvmError {}
export class RelvmMemoryError extends RelvmError {}
export class RelvmRecursionError extends RelvmError {}
export class RelvmNameError extends RelvmError {}
export class RelvmFormatError extends RelvmError {}
export class RelvmUnsupportedError extends RelvmError {}
export class RelvmBusyError extends RelvmError {}
export class RelvmInterrupted extends RelvmError {}
export class RelvmCallbackError extends RelvmError {}
export class RelvmTimeoutError extends RelvmError {}
