// Measures a model in onnxruntime-web and in relvm, which take turns:
//     node benchmarks/webassembly.mjs PACKAGE ONNXRUNTIME_WEB MODEL.onnx NATIVE.wasm BYTECODE.rvm CASES.json
// CASES.json is a list of cases, each an object with the inputs by name (tests/webassembly/json_values.py).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, ortFolder, onnx, native, bytecode, casesFile] = process.argv.slice(2);
const { Tensor, load } = await import(pathToFileURL(`${folder}/relvm.js`));
const ort = createRequire(import.meta.url)(ortFolder);
ort.env.wasm.numThreads = 1;
ort.env.logLevel = "fatal";

const ROUNDS = 9;
const ROUND_MS = 200; // of each engine, at least one run
const WARM_MS = 1500; // for the optimizing compiler of the engine
const ORT_NAMES = {
  f32: "float32", f64: "float64", i64: "int64", i32: "int32", u8: "uint8", i8: "int8", bool: "bool", f16: "float16",
};
const ARRAYS = {
  i8: Int8Array, i32: Int32Array, i64: BigInt64Array, f16: Uint16Array, f32: Float32Array, f64: Float64Array,
};

function array({ tensor: { dtype, data } }) {
  return new (ARRAYS[dtype] ?? Uint8Array)(Uint8Array.from(Buffer.from(data, "base64")).buffer);
}

const session = await ort.InferenceSession.create(readFileSync(onnx), { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
const models = { native: await load(native), bytecode: await load(bytecode) };
const results = [];
for (const inputs of JSON.parse(readFileSync(casesFile))) {
  const entries = Object.entries(inputs);
  const feeds = Object.fromEntries(
    entries.map(([name, value]) => [name, new ort.Tensor(ORT_NAMES[value.tensor.dtype], array(value), value.tensor.shape)]),
  );
  const own = Object.fromEntries(
    entries.map(([name, value]) => [name, new Tensor(array(value), value.tensor.shape, value.tensor.dtype)]),
  );
  const engines = {
    onnxruntime: async () => {
      const outputs = await session.run(feeds);
      return session.outputNames.map((name) => outputs[name]);
    },
    native: async () => models.native.runSync("main", own),
    bytecode: async () => models.bytecode.runSync("main", own),
  };
  const outputs = {};
  const times = {};
  for (const [name, run] of Object.entries(engines)) {
    const end = performance.now() + WARM_MS;
    do outputs[name] = await run();
    while (performance.now() < end);
    times[name] = [];
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const [name, run] of Object.entries(engines)) {
      const start = performance.now();
      const cpuStart = cpuMilliseconds();
      let runs = 0;
      do {
        await run();
        runs++;
      } while (performance.now() - start < ROUND_MS);
      times[name].push((cpuMilliseconds() - cpuStart) / runs);
    }
  const error = Math.max(...["native", "bytecode"].map((name) => difference(outputs[name], outputs.onnxruntime)));
  results.push({ ...Object.fromEntries(Object.entries(times).map(([name, values]) => [name, Math.min(...values)])), error });
}
console.log(JSON.stringify(results));

/** Return the processor time of this process, which other processes on the computer affect little. */
function cpuMilliseconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
}

/** Return the largest difference of two lists of outputs, relative to the largest value or to 1. */
function difference(own, others) {
  const list = Array.isArray(own) ? own : [own];
  let most = 0;
  others.forEach((other, i) => {
    const data = list[i]?.data ?? [];
    if (data.length !== other.data.length) return void (most = Infinity);
    let scale = 1;
    for (const x of other.data) scale = Math.max(scale, Math.abs(Number(x)));
    for (let k = 0; k < data.length; k++) most = Math.max(most, Math.abs(Number(data[k]) - Number(other.data[k])) / scale);
  });
  return most;
}
