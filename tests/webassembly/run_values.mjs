// Runs functions of models as a manifest states, and writes their results.  tests/webassembly/json_values.py describes
// the form of values.     node run_values.mjs FOLDER_OF_PACKAGE MANIFEST RESULTS
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [folder, manifest, results] = process.argv.slice(2);
const { Callable, List, Shape, Tensor, load } = await import(pathToFileURL(`${folder}/relvm.js`));

const ARRAYS = {
  i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array, u16: Uint16Array, u32: Uint32Array,
  u64: BigUint64Array, f16: Uint16Array, bf16: Uint16Array, f32: Float32Array, f64: Float64Array,
};

function decode(value) {
  const [kind, content] = Object.entries(value)[0];
  switch (kind) {
    case "nil": return null;
    case "int": return BigInt(content);
    case "float": return Buffer.from(content, "hex").readDoubleLE();
    case "bool":
    case "string": return content;
    case "shape": return Shape.from(content);
    case "tuple": return content.map(decode);
    case "list": return List.from(content.map(decode));
  }
  if (content.strings) return new Tensor(content.strings, content.shape, "str");
  const bytes = Uint8Array.from(Buffer.from(content.data, "base64"));
  return new Tensor(new (ARRAYS[content.dtype] ?? Uint8Array)(bytes.buffer), content.shape, content.dtype);
}

function encode(value) {
  if (value === null) return { nil: true };
  if (typeof value === "bigint") return { int: String(value) };
  if (typeof value === "boolean") return { bool: value };
  if (typeof value === "string") return { string: value };
  if (typeof value === "number") {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return { float: bytes.toString("hex") };
  }
  if (value instanceof Shape) return { shape: [...value] };
  if (value instanceof List) return { list: value.map(encode) };
  if (Array.isArray(value)) return { tuple: value.map(encode) };
  if (value instanceof Callable) return { string: "function" };
  const { data, shape, dtype } = value;
  if (dtype === "str") return { tensor: { dtype, shape, strings: data } };
  return { tensor: { dtype, shape, data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64") } };
}

const answers = [];
let path, model;
for (const { model: next, function: name, inputs, options } of JSON.parse(readFileSync(manifest))) {
  try {
    if (next !== path || options) {
      path = undefined; // a model that fails to load is loaded again
      model?.dispose();
      model = await load(next, options);
      path = next;
    }
    answers.push({ result: encode(model.runSync(name, inputs.map(decode))) });
  } catch (error) {
    if (error.status === undefined) throw error;
    answers.push({ error: error.name, message: error.message });
  }
}
writeFileSync(results, JSON.stringify(answers));
