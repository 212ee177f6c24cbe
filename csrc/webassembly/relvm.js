// relvm.js: loads and runs executables of relvm in WebAssembly.  See README.md of the package, and relvm.d.ts for types.
//
// Each model has a WebAssembly instance of its own, so the memory of a model is returned as a whole when the model is
// disposed of.  The functions that an instance exports are those of csrc/webassembly/host.c.

const IS_NODE = typeof process !== "undefined" && Boolean(process.versions?.node);
const VALUE_BYTES = 16; // an rvm_value: an int64 tag, and a payload of 8 bytes
const MAGIC = [0x89, 0x52, 0x56, 0x4d, 0x0d, 0x0a, 0x1a, 0x0a]; // of an executable
const WASM_MAGIC = [0x00, 0x61, 0x73, 0x6d];
const CLASS_OF_CODE = new Map([ // by the code and the number of bits of DLPack
  ["0/8", Int8Array],
  ["0/16", Int16Array],
  ["0/32", Int32Array],
  ["0/64", BigInt64Array],
  ["1/8", Uint8Array],
  ["1/16", Uint16Array],
  ["1/32", Uint32Array],
  ["1/64", BigUint64Array],
  ["2/16", Uint16Array],
  ["2/32", Float32Array],
  ["2/64", Float64Array],
  ["4/16", Uint16Array],
]);
const DTYPE_OF_ARRAY = new Map([ // the dtype of a typed array if none is stated
  ["Int8Array", "i8"],
  ["Int16Array", "i16"],
  ["Int32Array", "i32"],
  ["BigInt64Array", "i64"],
  ["Uint8Array", "u8"],
  ["Uint8ClampedArray", "u8"],
  ["Uint16Array", "u16"],
  ["Uint32Array", "u32"],
  ["BigUint64Array", "u64"],
  ["Float16Array", "f16"],
  ["Float32Array", "f32"],
  ["Float64Array", "f64"],
]);

/** The base class of all errors of relvm.  `status` is a name of csrc/tables/status.def. */
export class RelvmError extends Error {
  constructor(message, status = "ARGUMENT_ERROR", trace = "") {
    super(message);
    this.name = new.target.name;
    this.status = status;
    this.trace = trace;
  }
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

const ERRORS = {
  RelvmTypeError,
  RelvmShapeError,
  RelvmArgumentError,
  RelvmIndexError,
  RelvmArithmeticError,
  RelvmAssertionError,
  RelvmMemoryError,
  RelvmRecursionError,
  RelvmNameError,
  RelvmFormatError,
  RelvmUnsupportedError,
  RelvmBusyError,
  RelvmInterrupted,
  RelvmCallbackError,
  RelvmTimeoutError,
};

const typeError = (message) => new RelvmTypeError(message, "TYPE_ERROR");
const shapeError = (message) => new RelvmShapeError(message, "SHAPE_ERROR");
const argumentError = (message) => new RelvmArgumentError(message, "ARGUMENT_ERROR");
const memoryError = (message) => new RelvmMemoryError(message, "OUT_OF_MEMORY");

/** An n-dimensional array: its elements in row-major order, its dimensions, and the name of its dtype. */
export class Tensor {
  constructor(data, shape, dtype) {
    this.data = data;
    this.shape = shape;
    this.dtype = dtype;
  }
}

/** The value of a shape, which differs from a tuple of integers. */
export class Shape extends Array {}

/** A list of the program, which differs from a tuple. */
export class List extends Array {}

/**
 * Return a tensor.  Without `shape`, it has one axis.  Without `dtype`, the class of `data` determines it; an array of
 * strings has dtype "str".
 */
export function tensor(data, shape, dtype) {
  const isText = Array.isArray(data) && data.every((element) => typeof element === "string");
  const known = isText ? "str" : DTYPE_OF_ARRAY.get(data?.constructor?.name);
  if (known === undefined) throw typeError(`tensor: expected a typed array or an array of strings, got ${describe(data)}`);
  return new Tensor(data, shape === undefined ? [data.length] : Array.from(shape), dtype ?? known);
}

function describe(value) {
  if (value === null) return "null";
  if (typeof value !== "object") return `a ${typeof value}`;
  return `a value of class ${value.constructor?.name ?? "Object"}`;
}

/** A function value that a run returned.  It belongs to its model. */
export class Callable {
  #model;
  #address;
  constructor(model, address) {
    this.#model = model;
    this.#address = address;
  }
  /** Call the function with positional arguments. */
  async call(...inputs) {
    if (!this.#address) throw argumentError("the function was disposed of");
    return this.#model.invoke(this.#address, inputs);
  }
  /** Release the function. */
  dispose() {
    if (this.#address) this.#model.releaseValue(this.#address);
    this.#address = 0;
  }
  /** @internal Copy the value to `address`. */
  store(instance, address) {
    if (instance !== this.#model) throw argumentError("a function belongs to the model that returned it");
    if (!this.#address) throw argumentError("the function was disposed of");
    instance.copyValue(this.#address, address);
  }
}

// ---- reading files ----

async function readBytes(source, what) {
  if (source instanceof ArrayBuffer) return new Uint8Array(source);
  if (ArrayBuffer.isView(source)) return new Uint8Array(source.buffer, source.byteOffset, source.byteLength);
  if (typeof Blob !== "undefined" && source instanceof Blob) return new Uint8Array(await source.arrayBuffer());
  if (typeof Response !== "undefined" && source instanceof Response) return readResponse(source, source.url || what);
  if (typeof source === "string" || source instanceof URL) {
    const isFile = IS_NODE && !/^(https?|data|blob):/.test(String(source));
    if (!isFile) return readResponse(await fetch(source), String(source));
    const { readFile } = await import("node:fs/promises");
    return new Uint8Array(await readFile(source instanceof URL ? source : source.startsWith("file:") ? new URL(source) : source));
  }
  throw typeError(`${what}: expected a path, a URL, bytes, a Blob or a Response, got ${describe(source)}`);
}

async function readResponse(response, name) {
  if (!response.ok) throw argumentError(`${name}: the server answered ${response.status} ${response.statusText}`);
  return new Uint8Array(await response.arrayBuffer());
}

const startsWith = (bytes, magic) => magic.every((byte, i) => bytes[i] === byte);

// ---- instances ----

let bundled; // the promise of the module beside this file
async function bundledModule() {
  bundled ??= readBytes(new URL("relvm.wasm", import.meta.url), "relvm.wasm").then((bytes) => WebAssembly.compile(bytes));
  try {
    return await bundled;
  } catch (error) {
    bundled = undefined;
    throw error;
  }
}

async function compile(source, what) {
  if (source instanceof WebAssembly.Module) return source;
  try {
    return await WebAssembly.compile(await readBytes(source, what));
  } catch (error) {
    if (!(error instanceof WebAssembly.CompileError)) throw error;
    throw new RelvmFormatError(`${what}: not a WebAssembly module that runs here: ${error.message}`, "BAD_EXECUTABLE");
  }
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** A WebAssembly instance with its memory.  Values are passed by address. */
class Instance {
  constructor(module, print, crypto) {
    const clock = (_id, _precision, time) => {
      this.view().setBigInt64(time, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    };
    const random = (address, size) => {
      for (let at = 0; at < size; at += 65536) // the most that getRandomValues accepts
        crypto.getRandomValues(this.bytes(address + at, Math.min(65536, size - at)));
      return 0;
    };
    const shown = (address, count) => print?.(...Array.from({ length: count }, (_, i) => this.read((address >>> 0) + i * VALUE_BYTES)));
    this.c = new WebAssembly.Instance(module, {
      relvm: { print: shown, before: () => this.observer?.before(), after: (...call) => this.observer?.after(...call) },
      wasi_snapshot_preview1: { clock_time_get: clock, random_get: random, sched_yield: () => 0 },
    }).exports;
    this.c._initialize();
    this.tags = this.table(this.c.relvm_tag_name);
    this.tagOf = new Map(this.tags.map((name, i) => [name, i]));
    this.statuses = this.table(this.c.relvm_status_name);
    this.errors = this.table(this.c.relvm_error_name);
    this.sections = this.table(this.c.relvm_section_name);
    this.kinds = this.table(this.c.relvm_kind_name);
    this.dtypes = this.table(this.c.relvm_dtype_name).map((name, i) => {
      const code = this.c.relvm_dtype_code(i);
      const bits = this.c.relvm_dtype_bits(i);
      const isText = name === "str";
      return { name, isText, isBool: name === "bool", array: isText ? Array : (CLASS_OF_CODE.get(`${code}/${bits}`) ?? Uint8Array) };
    });
    this.dtypeOf = new Map(this.dtypes.map(({ name }, i) => [name, i]));
    this.scratch = this.allocate(2 * VALUE_BYTES + 24); // a result, another value, and the words of relvm_parts
    this.result = this.scratch;
    this.words = this.scratch + 2 * VALUE_BYTES;
  }

  table(nameOf) {
    const names = [];
    for (let i = 0, address; (address = nameOf(i)); i++) names.push(this.text(address));
    return names;
  }

  // Memory can grow in every call, which detaches earlier views.
  view() {
    return new DataView(this.c.memory.buffer);
  }
  bytes(address, size) {
    return new Uint8Array(this.c.memory.buffer, address >>> 0, size);
  }
  text(address, size) {
    address >>>= 0;
    const memory = new Uint8Array(this.c.memory.buffer);
    return decoder.decode(memory.subarray(address, size === undefined ? memory.indexOf(0, address) : address + size));
  }
  allocate(size) {
    const address = size <= 0x7fff0000 ? this.c.relvm_allocate(size) >>> 0 : 0;
    if (!address) throw memoryError(`WebAssembly memory: cannot allocate ${size} bytes`);
    return address;
  }

  /** Return the RelvmError for the error value at `address`, and release the value. */
  takeError(address) {
    this.c.relvm_parts(address, this.words);
    const view = this.view();
    const [status, message, trace] = [0, 4, 8].map((at) => view.getUint32(this.words + at, true));
    const Class = ERRORS[this.errors[status]] ?? RelvmError;
    const error = new Class(this.text(message), this.statuses[status], trace ? this.text(trace) : "");
    this.c.relvm_release(address);
    return error;
  }
  /** Throw the error at `address` if the status is not OK. */
  expect(status, address) {
    if (status !== 0) throw this.takeError(address);
  }

  // ---- values ----

  /** Return the value at `address` as a JavaScript value.  `address` stays valid. */
  read(address) {
    const view = this.view();
    const tag = this.tags[view.getUint32(address, true)];
    switch (tag) {
      case "NIL":
        return null;
      case "INT":
        return view.getBigInt64(address + 8, true);
      case "FLOAT":
        return view.getFloat64(address + 8, true);
      case "BOOL":
        return view.getUint32(address + 8, true) !== 0;
      case "DTYPE":
        return this.dtypes[view.getUint32(address + 8, true)].name;
      case "TENSOR":
      case "STRING":
      case "SHAPE":
      case "TUPLE":
      case "LIST":
        break;
      case "FUNCTION":
      case "CLOSURE": {
        const copy = this.allocate(VALUE_BYTES);
        this.copyValue(address, copy);
        return new Callable(this, copy);
      }
      default:
        throw new RelvmUnsupportedError(`a value of kind ${tag} has no JavaScript value`, "UNSUPPORTED");
    }
    this.c.relvm_parts(address, this.words);
    const words = Array.from({ length: 5 }, (_, i) => this.view().getUint32(this.words + 4 * i, true));
    if (tag === "STRING") return this.text(words[1], words[0]);
    if (tag === "SHAPE") return Shape.from(this.dims(words[1], words[0]));
    if (tag === "TENSOR") return this.readTensor(address, words);
    const items = Array.from({ length: words[0] }, (_, i) => this.read(words[1] + i * VALUE_BYTES));
    return tag === "LIST" ? List.from(items) : items;
  }
  dims(address, rank) {
    return Array.from(new BigInt64Array(this.c.memory.buffer, address, rank), Number);
  }
  readTensor(address, [dtypeIndex, rank, dims, data, size]) {
    const dtype = this.dtypes[dtypeIndex];
    const shape = this.dims(dims, rank);
    if (dtype.isText) return new Tensor(this.readStrings(address), shape, dtype.name);
    return new Tensor(new dtype.array(this.c.memory.buffer.slice(data, data + size)), shape, dtype.name);
  }
  readStrings(address) {
    const packed = this.c.relvm_packed_strings(address, this.words) >>> 0;
    if (!packed) throw memoryError("WebAssembly memory: cannot allocate the strings of a tensor");
    const total = this.view().getUint32(this.words, true);
    const strings = [];
    // The packed form has an int64 end offset for each string, then the bytes.
    const view = this.view();
    const ends = [];
    for (let bytes = 0; 8 * ends.length + bytes < total; ) ends.push((bytes = Number(view.getBigInt64(packed + 8 * ends.length, true))));
    const first = packed + 8 * ends.length;
    ends.forEach((end, i) => strings.push(this.text(first + (i ? ends[i - 1] : 0), end - (i ? ends[i - 1] : 0))));
    this.c.relvm_free(packed);
    return strings;
  }

  copyValue(from, to) {
    this.bytes(to, VALUE_BYTES).set(this.bytes(from, VALUE_BYTES));
    this.c.relvm_retain(to);
  }
  releaseValue(address) {
    this.c.relvm_model_enter();
    this.c.relvm_release(address);
    this.c.relvm_model_leave();
    this.c.relvm_free(address);
  }

  setScalar(address, tag) {
    const view = this.view();
    view.setBigInt64(address, BigInt(this.tagOf.get(tag)), true);
    view.setBigInt64(address + 8, 0n, true);
    return view;
  }

  /** Store a JavaScript value at `address`.  type: the type that the program states, as text, or "". */
  write(address, value, type, name) {
    const kind = /^[a-z0-9]*/.exec(type)[0];
    const isTensorType = this.dtypeOf.has(kind) && type[kind.length] === "[";
    if (value === null || value === undefined) return void this.setScalar(address, "NIL");
    if (value instanceof Callable) return void value.store(this, address);
    if (typeof value === "boolean") return void this.setScalar(address, "BOOL").setUint32(address + 8, value ? 1 : 0, true);
    if (typeof value === "bigint") {
      if (value !== BigInt.asIntN(64, value)) throw argumentError(`${name}: ${value} is outside int64`);
      return void this.setScalar(address, "INT").setBigInt64(address + 8, value, true);
    }
    if (typeof value === "number") {
      if (isTensorType) throw typeError(`${name}: expected a tensor of type ${type}, got a number`);
      if (kind !== "i64") return void this.setScalar(address, "FLOAT").setFloat64(address + 8, value, true);
      if (!Number.isSafeInteger(value)) throw typeError(`${name}: expected an integer, got ${value}; pass a bigint`);
      return void this.setScalar(address, "INT").setBigInt64(address + 8, BigInt(value), true);
    }
    if (typeof value === "string") return this.writeBytes(encoder.encode(value), (at, size) => this.c.relvm_string(at, size, address), address);
    if (value instanceof Shape) return this.writeDims(value, name, (dims) => this.c.relvm_shape(value.length, dims, address), address);
    if (Array.isArray(value)) return this.writeItems(address, value, name);
    if (ArrayBuffer.isView(value)) return this.writeTensor(address, tensor(value), name);
    if (typeof value === "object" && value.data !== undefined && value.shape !== undefined)
      return this.writeTensor(address, value, name);
    throw typeError(`${name}: expected ${type ? `a value of type ${type}` : "a tensor, number, bigint, boolean, string or array"}, got ${describe(value)}`);
  }
  writeItems(address, values, name) {
    const items = this.allocate(Math.max(1, values.length) * VALUE_BYTES);
    let count = 0;
    try {
      for (; count < values.length; count++) this.write(items + count * VALUE_BYTES, values[count], "", `${name}[${count}]`);
      const create = values instanceof List ? this.c.relvm_list : this.c.relvm_tuple;
      this.expect(create(count, items, address), address);
    } finally {
      while (count-- > 0) this.c.relvm_release(items + count * VALUE_BYTES);
      this.c.relvm_free(items);
    }
  }
  writeBytes(bytes, create, result) {
    const block = this.allocate(bytes.byteLength);
    try {
      this.bytes(block, bytes.byteLength).set(bytes);
      this.expect(create(block, bytes.byteLength), result);
    } finally {
      this.c.relvm_free(block);
    }
  }
  writeDims(shape, name, create, result) {
    const dims = new BigInt64Array(shape.length);
    shape.forEach((dim, i) => {
      if (typeof dim !== "bigint" && !Number.isSafeInteger(dim)) throw shapeError(`${name}: dimension ${i} must be an integer, got ${describe(dim)}`);
      dims[i] = BigInt(dim);
    });
    this.writeBytes(new Uint8Array(dims.buffer), create, result);
  }
  writeTensor(address, { data, shape, dtype }, name) {
    const stated = dtype ?? (Array.isArray(data) ? "str" : DTYPE_OF_ARRAY.get(data?.constructor?.name));
    const index = this.dtypeOf.get(stated);
    if (index === undefined) throw typeError(`${name}: expected a dtype, one of ${[...this.dtypeOf.keys()].join(", ")}, got ${stated}`);
    const { array, isText, isBool } = this.dtypes[index];
    if (!Array.isArray(shape)) throw shapeError(`${name}: expected an array of dimensions as shape, got ${describe(shape)}`);
    const isHalf = stated === "f16" && data?.constructor?.name === "Float16Array";
    const isBytes = array === Uint8Array && data instanceof Uint8ClampedArray;
    if (!(data instanceof array) && !isHalf && !isBytes)
      throw typeError(`${name}: elements of dtype ${stated} must be in ${isText ? "an array of strings" : `a ${array.name}`}, got ${describe(data)}`);
    const count = shape.reduce((product, dim) => product * Number(dim), 1);
    if (data.length !== count) throw shapeError(`${name}: a tensor of shape [${shape.join(", ")}] has ${count} elements, got ${data.length}`);
    if (isText) return this.writeStrings(address, data, shape, name);
    if (isBool && data.some((element) => element > 1)) throw typeError(`${name}: elements of dtype bool must be 0 or 1`);
    this.expect(this.c.relvm_afford(data.byteLength, address), address);
    this.writeDims(shape, name, (dims) => this.c.relvm_tensor(index, shape.length, dims, address), address);
    this.c.relvm_parts(address, this.words);
    const at = this.view().getUint32(this.words + 12, true);
    this.bytes(at, data.byteLength).set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  }
  writeStrings(address, strings, shape, name) {
    const encoded = strings.map((string, i) => {
      if (typeof string !== "string") throw typeError(`${name}: element ${i} must be a string, got ${describe(string)}`);
      return encoder.encode(string);
    });
    const total = encoded.reduce((sum, bytes) => sum + bytes.length, 8 * strings.length);
    this.expect(this.c.relvm_afford(total, address), address);
    const packed = new Uint8Array(total);
    const ends = new DataView(packed.buffer);
    let end = 0;
    encoded.forEach((bytes, i) => {
      packed.set(bytes, 8 * strings.length + end);
      ends.setBigInt64(8 * i, BigInt((end += bytes.length)), true);
    });
    const create = (dims) => {
      const block = this.allocate(total);
      this.bytes(block, total).set(packed);
      const status = this.c.relvm_tensor_of_strings(shape.length, dims, block, total, address);
      this.c.relvm_free(block);
      return status;
    };
    this.writeDims(shape, name, create, address);
  }

  // ---- calls ----

  /** Store the inputs, and return the result of `call`, which gets their address and number. */
  run(inputs, types, names, call) {
    if (this.c.relvm_model_enter() !== 1) throw new RelvmBusyError("the model is running", "BUSY");
    const values = this.allocate(Math.max(1, inputs.length) * VALUE_BYTES);
    let count = 0;
    try {
      for (; count < inputs.length; count++) this.write(values + count * VALUE_BYTES, inputs[count], types[count] ?? "", names(count));
      this.expect(call(values, count), this.result);
      try {
        return this.read(this.result);
      } finally {
        this.c.relvm_release(this.result);
      }
    } finally {
      while (count-- > 0) this.c.relvm_release(values + count * VALUE_BYTES);
      this.c.relvm_free(values);
      this.c.relvm_model_leave();
    }
  }
  /** Return the place of a tensor or storage in memory, or null for another value. */
  place(address) {
    const tag = this.tags[this.view().getUint32(address, true)];
    if (tag !== "TENSOR" && tag !== "STORAGE") return null;
    this.c.relvm_parts(address, this.words);
    const [first, rank, dims, data, size] = Array.from({ length: 5 }, (_, i) => this.view().getUint32(this.words + 4 * i, true));
    if (tag === "STORAGE") return { kind: "storage", address: rank, bytes: first };
    return { kind: "tensor", dtype: this.dtypes[first].name, shape: this.dims(dims, rank), address: data, bytes: size };
  }
  /** Record the calls of kernels and packed functions during `action`. */
  recorded(action) {
    const calls = [];
    const starts = [];
    const places = (at, count) => Array.from({ length: count }, (_, i) => this.place((at >>> 0) + i * VALUE_BYTES));
    this.observer = {
      before: () => starts.push(performance.now()),
      after: (index, args, count, result) => {
        const milliseconds = performance.now() - starts.pop();
        const name = this.text(this.c.relvm_function_name(index));
        const kind = this.kinds[this.c.relvm_function_kind(index)];
        calls.push({ name, kind, milliseconds, arguments: places(args, count), result: result ? this.place(result >>> 0) : null });
      },
    };
    this.expect(this.c.relvm_observe(1, this.result), this.result);
    try {
      return { result: action(), calls };
    } finally {
      this.c.relvm_observe(0, this.result);
      this.observer = undefined;
    }
  }
  invoke(callee, inputs) {
    return this.guarded(() => this.run(inputs, [], (i) => `argument ${i}`, (at, count) => this.c.relvm_invoke(callee, at, count, this.result)));
  }
  /** Call `action`.  A trap, such as an exhausted stack of the host, leaves the instance unusable. */
  guarded(action) {
    if (this.broken) throw this.broken;
    try {
      return action();
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError) && !(error instanceof RangeError)) throw error;
      const isStack = error instanceof RangeError;
      const Class = isStack ? RelvmRecursionError : RelvmError;
      this.broken = new Class(`the WebAssembly instance failed and can no longer be used: ${error.message}`, isStack ? "STACK_OVERFLOW" : "UNSUPPORTED");
      throw this.broken;
    }
  }
}

/** A loaded model.  `load` creates it. */
export class Model {
  #instance;
  #functions = new Map();

  /** @internal */
  constructor(instance) {
    this.#instance = instance;
    const { c } = instance;
    const signature = this.#json("signature");
    for (let i = 0; i < c.relvm_function_count(); i++) {
      const kind = instance.kinds[c.relvm_function_kind(i)];
      if (kind !== "bytecode" && kind !== "native") continue; // a private function, kernel or packed function
      const name = instance.text(c.relvm_function_name(i));
      const parameters = Array.from({ length: c.relvm_parameter_count(i) }, (_, p) => ({
        name: instance.text(c.relvm_parameter_name(i, p)),
        type: signature?.[name]?.params[p]?.type ?? "",
      }));
      this.#functions.set(name, { index: i, name, parameters, result: signature?.[name]?.result ?? "" });
    }
  }

  #json(section) {
    const { c, words, sections } = this.#instance;
    c.relvm_section(sections.indexOf(section), words);
    const view = this.#instance.view();
    const [address, size] = [view.getUint32(words, true), view.getUint32(words + 4, true)];
    return address ? JSON.parse(this.#instance.text(address, size)) : undefined;
  }

  /** The public functions, with the types that the program states. */
  get functions() {
    return [...this.#functions.values()].map(({ name, parameters, result }) => ({ name, parameters, result }));
  }

  /** The size of the memory of this model in bytes. */
  get memoryBytes() {
    return this.#live().c.memory.buffer.byteLength;
  }

  #live() {
    if (!this.#instance) throw argumentError("the model was disposed of");
    return this.#instance;
  }

  /** Call a function.  `inputs` is an array of its arguments, or an object that names them.  Outputs are copies. */
  async run(name, inputs = []) {
    return this.runSync(name, inputs);
  }

  /** Call a function, and record the calls of kernels and packed functions that it makes: their times, and the places of
   * their tensors in memory.  The observed run is slower. */
  async profile(name, inputs = []) {
    return this.#live().recorded(() => this.runSync(name, inputs));
  }

  /** Like `run`, without a promise. */
  runSync(name, inputs = []) {
    const instance = this.#live();
    const found = this.#functions.get(name);
    if (!found) throw new RelvmNameError(`no function ${name}; the functions are ${[...this.#functions.keys()].join(", ")}`, "UNKNOWN_FUNCTION");
    const { index, parameters } = found;
    const values = Array.isArray(inputs) ? inputs : named(name, parameters, inputs);
    const types = parameters.map(({ type }) => type);
    const names = (i) => `${name}: argument ${parameters[i]?.name ?? i}`;
    return instance.guarded(() => instance.run(values, types, names, (at, count) => instance.c.relvm_call(index, at, count, instance.result)));
  }

  /** Seed the random number generator of the model. */
  seed(seed) {
    this.#live().c.relvm_seed(BigInt.asUintN(64, BigInt(seed)));
  }

  /** Release the memory of the model, which cannot be used afterwards. */
  dispose() {
    this.#instance = undefined;
  }
}

function named(name, parameters, inputs) {
  if (typeof inputs !== "object" || inputs === null || ArrayBuffer.isView(inputs))
    throw typeError(`${name}: expected an array of inputs, or an object that names them, got ${describe(inputs)}`);
  const names = parameters.map((parameter) => parameter.name);
  for (const key of Object.keys(inputs))
    if (!names.includes(key)) throw argumentError(`${name}: no parameter ${key}; the parameters are ${names.join(", ")}`);
  for (const key of names) if (!(key in inputs)) throw argumentError(`${name}: the argument ${key} is missing`);
  return names.map((key) => inputs[key]);
}

function limit(options, name, scale, fallback = 0) {
  const value = options[name] ?? fallback;
  if (typeof value !== "number" || !(value >= 0)) throw argumentError(`load: ${name} must be a number of at least 0, got ${value}`);
  return BigInt(Math.ceil(Math.min(value * scale, 2 ** 62)));
}

/**
 * Load a model: an executable (.rvm), or a WebAssembly module that `relvm compile --target wasm32` made.
 *
 * source: a path or file: URL in Node.js, a URL, a Response, a Blob, or the bytes.
 */
export async function load(source, options = {}) {
  const limits = [
    limit(options, "stackValues", 1, 1 << 16),
    limit(options, "callDepth", 1, 1 << 14),
    limit(options, "maxBytes", 1),
    limit(options, "maxSteps", 1),
    limit(options, "maxMilliseconds", 1e6),
    options.checkData ? 1n : 0n,
  ];
  if (options.print !== undefined && typeof options.print !== "function") throw typeError(`load: print must be a function, got ${describe(options.print)}`);
  const isModule = source instanceof WebAssembly.Module;
  const bytes = isModule ? undefined : await readBytes(source, "load");
  const isWasm = isModule || startsWith(bytes, WASM_MAGIC);
  if (!isWasm && !startsWith(bytes, MAGIC)) throw new RelvmFormatError("load: not a relvm executable (wrong magic number)", "BAD_EXECUTABLE");
  const module = isWasm ? await compile(isModule ? source : bytes, "load") : options.runtime === undefined ? await bundledModule() : await compile(options.runtime, "load: runtime");
  if (!WebAssembly.Module.exports(module).some(({ name }) => name === "relvm_open"))
    throw new RelvmFormatError("load: the WebAssembly module is not one of relvm", "BAD_EXECUTABLE");
  const crypto = globalThis.crypto ?? (await import("node:crypto")).webcrypto; // Node.js 18 has no global one
  const instance = new Instance(module, options.print, crypto);
  const block = isWasm ? 0 : instance.allocate(bytes.length);
  if (!isWasm) instance.bytes(block, bytes.length).set(bytes);
  const at = instance.allocate(8 * limits.length);
  new BigInt64Array(instance.c.memory.buffer, at, limits.length).set(limits);
  instance.guarded(() => instance.expect(instance.c.relvm_open(block, isWasm ? 0 : bytes.length, at, instance.result), instance.result));
  instance.c.relvm_free(at);
  return new Model(instance);
}

// ---- conversions of 16-bit floats, whose tensors contain the bits ----

const word = new DataView(new ArrayBuffer(4));

/** Return the bits of the 16-bit float (f16) that is nearest to each number. */
export function toFloat16(numbers) {
  return Uint16Array.from(numbers, (number) => {
    const magnitude = Math.abs(number);
    word.setFloat32(0, number);
    const sign = (word.getUint32(0) >>> 16) & 0x8000;
    if (Number.isNaN(number)) return sign | 0x7e00;
    if (magnitude >= 65520) return sign | 0x7c00;
    const exponent = magnitude < 2 ** -14 ? -14 : Math.floor(Math.log2(magnitude));
    const least = 2 ** ((magnitude < 2 ** exponent ? exponent - 1 : exponent) - 10);
    const quotient = magnitude / Math.max(least, 2 ** -24);
    const floor = Math.floor(quotient);
    const half = quotient - floor;
    const units = floor + (half > 0.5 || (half === 0.5 && floor % 2) ? 1 : 0);
    const rounded = units * Math.max(least, 2 ** -24);
    if (rounded < 2 ** -14) return sign | Math.round(rounded * 2 ** 24);
    word.setFloat32(0, rounded);
    const bits = word.getUint32(0);
    return sign | ((((bits >>> 23) - 112) << 10) | ((bits >>> 13) & 0x3ff));
  });
}

/** Return the numbers of 16-bit floats (f16), given their bits. */
export function fromFloat16(bits) {
  return Float32Array.from(bits, (code) => {
    const sign = code & 0x8000 ? -1 : 1;
    const exponent = (code >>> 10) & 31;
    const mantissa = code & 0x3ff;
    if (exponent === 31) return mantissa ? NaN : sign * Infinity;
    return sign * (exponent ? (1024 + mantissa) * 2 ** (exponent - 25) : mantissa * 2 ** -24);
  });
}
