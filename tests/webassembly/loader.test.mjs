// Tests of the JavaScript loader: `node --test loader.test.mjs`, with the folder of the npm package in PACKAGE and the
// models of programs.py in MODELS.  tests/webassembly/test_node.py runs them.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import test from "node:test";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

const { PACKAGE, MODELS } = process.env;
const relvm = await import(pathToFileURL(`${PACKAGE}/relvm.js`));
const { Callable, List, Shape, Tensor, fromFloat16, load, tensor, toFloat16 } = relvm;
const path = (name) => `${MODELS}/${name}`;
const program = await load(path("program.rvm"));
const floats = (count, shape) => tensor(Float32Array.from({ length: count }, (_, i) => Math.sin(i)), shape);

/** Check that an action fails with an error of a class, whose message matches. */
async function fails(action, Class, message) {
  await assert.rejects(async () => action(), (error) => {
    assert.equal(error.constructor, Class, error.stack);
    assert.match(error.message, message);
    assert.equal(error.name, Class.name);
    return true;
  });
}

test("functions have parameters with types", () => {
  assert.deepEqual(program.functions.find(({ name }) => name === "scale"), {
    name: "scale",
    parameters: [{ name: "x", type: "f32[n, 4]" }, { name: "k", type: "i64" }, { name: "c", type: "f64" }],
    result: "(f32[n, 4], i64, f64, bool)",
  });
});

test("arguments by position and by name, scalars, symbolic shapes", async () => {
  for (const rows of [0, 1, 3]) {
    const [y, k, c, large] = await program.run("scale", [floats(rows * 4, [rows, 4]), 7, 3]);
    assert.deepEqual([y.shape, y.dtype, k, c, large], [[rows, 4], "f32", 8n, 1.5, true]);
    for (let r = 0; r < rows; r++)
      assert.ok(Math.abs(y.data.slice(4 * r, 4 * r + 4).reduce((a, b) => a + b) - 1) < 1e-6);
  }
  const named = await program.run("scale", { c: 3, x: floats(4, [1, 4]), k: 2n ** 62n });
  assert.deepEqual(named.slice(1), [2n ** 62n + 1n, 1.5, true]);
});

test("strings and regular expressions", async () => {
  const [joined, matches] = await program.run("words", [tensor(["aa", "é", ""]), tensor(["b", "\u{1f600}", ""])]);
  assert.deepEqual(joined, new Tensor(["aab", "é\u{1f600}", ""], [3], "str"));
  assert.deepEqual(matches, new Tensor(Uint8Array.of(0, 0, 0), [3], "bool"));
  assert.deepEqual((await program.run("words", [tensor(["aaab"]), tensor([""])]))[1].data, Uint8Array.of(1));
});

test("16-bit floats, 64-bit and 8-bit integers", async () => {
  const bits = toFloat16([1.5, -2, 65504, 6e-8, NaN]);
  assert.deepEqual([...fromFloat16(bits).slice(0, 3)], [1.5, -2, 65504]);
  const squares = await program.run("halves", [new Tensor(bits, [5], "f16")]);
  assert.deepEqual([...fromFloat16(squares.data)], [2.25, 4, Infinity, 0, NaN]);
  const [wide, narrow] = await program.run("integers", [
    tensor(BigInt64Array.of(2n ** 62n, -1n)),
    tensor(Uint8Array.of(200, 3)),
  ]);
  assert.deepEqual([[...wide.data], [...narrow.data]], [[-(2n ** 63n), -2n], [144, 6]]);
});

test("every 16-bit float survives conversion", () => {
  const all = Uint16Array.from({ length: 65536 }, (_, i) => i).filter((code) => (code & 0x7c00) !== 0x7c00 || !(code & 0x3ff));
  assert.deepEqual(toFloat16(fromFloat16(all)), all);
  assert.deepEqual([...toFloat16([65519.99, 65520, 2 ** -25, 2 ** -25 * 1.01, 1 + 2 ** -11, 1 + 3 * 2 ** -11])], [
    0x7bff, 0x7c00, 0, 1, 0x3c00, 0x3c02,
  ]);
});

test("closures, lists, tuples and shapes", async () => {
  const add = await program.run("adder", [tensor(Float32Array.of(1, 2))]);
  assert.ok(add instanceof Callable);
  assert.deepEqual((await add.call(tensor(Float32Array.of(10, 20)))).data, Float32Array.of(11, 22));
  add.dispose();
  add.dispose();
  await fails(() => add.call(), relvm.RelvmArgumentError, /disposed/);
  const parts = await program.run("list_of", [floats(20, [5, 4])]);
  assert.ok(parts instanceof List);
  assert.deepEqual(parts.map(({ shape }) => shape), List.from([[2, 4], [2, 4], [1, 4]]));
  assert.deepEqual((await program.run("sum_list", [parts])).data, floats(20).data);
  assert.deepEqual(await program.run("pair", [[floats(2), [9n, floats(2)]]]), [
    tensor(floats(2).data.map((x) => x + x)),
    9n,
  ]);
  const [shape, product] = await program.run("sizes", [Shape.of(3, 5)]);
  assert.deepEqual([shape, product], [Shape.of(5, 3), 15n]);
});

test("errors name what is wrong", async () => {
  const x = floats(4, [1, 4]);
  const { RelvmArgumentError, RelvmAssertionError, RelvmFormatError, RelvmNameError, RelvmShapeError, RelvmTypeError } = relvm;
  await fails(() => program.run("none"), RelvmNameError, /no function none; the functions are scale, words/);
  await fails(() => program.run("scale", [x]), RelvmArgumentError, /scale: expected 3 arguments \(x, k, c\), got 1/);
  await fails(() => program.run("scale", { x, k: 1, z: 1 }), RelvmArgumentError, /no parameter z; the parameters are x, k, c/);
  await fails(() => program.run("scale", { x }), RelvmArgumentError, /the argument k is missing/);
  await fails(() => program.run("scale", 7), RelvmTypeError, /expected an array of inputs/);
  await fails(() => program.run("scale", [floats(6, [2, 3]), 1, 1]), RelvmShapeError, /argument x: expected dimension 1 to be 4, got 3/);
  await fails(() => program.run("scale", [tensor(new Float64Array(4), [1, 4]), 1, 1]), RelvmTypeError, /dtype f32, got .* dtype f64/);
  await fails(() => program.run("scale", [x, 1.5, 1]), RelvmTypeError, /argument k: expected an integer, got 1.5/);
  await fails(() => program.run("scale", [x, 2n ** 64n, 1]), RelvmArgumentError, /outside int64/);
  await fails(() => program.run("scale", [1, 1, 1]), RelvmTypeError, /argument x: expected a tensor of type f32\[n, 4\], got a number/);
  await fails(() => program.run("scale", [{}, 1, 1]), RelvmTypeError, /argument x: expected a value of type f32\[n, 4\], got a value of class Object/);
  await fails(() => program.run("scale", [new Tensor(new Float32Array(3), [1, 4], "f32"), 1, 1]), RelvmShapeError, /has 4 elements, got 3/);
  await fails(() => program.run("scale", [new Tensor(new Float32Array(4), [1, -4], "f32"), 1, 1]), RelvmShapeError, /argument x/);
  await fails(() => program.run("scale", [new Tensor([1, 2], [2], "f32"), 1, 1]), RelvmTypeError, /dtype f32 must be in a Float32Array/);
  await fails(() => program.run("scale", [new Tensor(new Float32Array(1), [1], "f33"), 1, 1]), RelvmTypeError, /one of bool, i8,.* got f33/);
  await fails(() => program.run("words", [new Tensor([1], [1], "str"), tensor([""])]), RelvmTypeError, /element 0 must be a string/);
  await fails(() => program.run("check", [tensor(new Float32Array(1))]), RelvmAssertionError, /n must exceed 1/);
  await fails(() => load(Uint8Array.of(1, 2, 3)), RelvmFormatError, /not a relvm executable/);
  await fails(() => load(Uint8Array.of(0, 0x61, 0x73, 0x6d, 9)), RelvmFormatError, /not a WebAssembly module/);
  await fails(() => load(Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0)), RelvmFormatError, /not one of relvm/);
  await fails(() => load(7), RelvmTypeError, /expected a path, a URL, bytes, a Blob or a Response, got a number/);
  await fails(() => load(path("program.rvm"), { maxBytes: -1 }), RelvmArgumentError, /maxBytes/);
  await fails(() => tensor(7), RelvmTypeError, /typed array/);
  const file = readFileSync(path("program.rvm"));
  await fails(() => load(file.subarray(0, 1000)), RelvmFormatError, /may be truncated/);
  for (let i = 100; i < 140; i++) {
    const damaged = Uint8Array.from(file);
    damaged[i] ^= 0xff;
    await assert.rejects(() => load(damaged), relvm.RelvmError);
  }
  const error = await program.run("scale", [floats(6, [2, 3]), 1, 1]).catch((caught) => caught);
  assert.equal(error.status, "SHAPE_ERROR");
  assert.match(error.trace, /in scale at instruction/);
});

test("limits of steps, time, memory and depth", async () => {
  const steps = await load(path("program.rvm"), { maxSteps: 100000 });
  assert.equal(await steps.run("spin", [10]), 10n);
  await fails(() => steps.run("spin", [1e9]), relvm.RelvmTimeoutError, /steps/);
  assert.equal(await steps.run("spin", [10]), 10n);
  const time = await load(path("program.rvm"), { maxMilliseconds: 20 });
  await fails(() => time.run("spin", [1e15]), relvm.RelvmTimeoutError, /seconds/);
  const bytes = await load(path("program.rvm"), { maxBytes: 1e6 });
  await fails(() => bytes.run("large", [1e6]), relvm.RelvmMemoryError, /max_bytes/);
  await fails(() => bytes.run("scale", [floats(4e5, [1e5, 4]), 1, 1]), relvm.RelvmMemoryError, /max_bytes/);
  assert.equal((await bytes.run("large", [1000])).data.length, 1000);
  await fails(() => program.run("large", [2 ** 40]), relvm.RelvmMemoryError, /./);
  await fails(() => program.run("large", [2 ** 30]), relvm.RelvmMemoryError, /./);
  assert.equal(await program.run("deep", [5000]), 5000n);
  await fails(() => program.run("deep", [1e6]), relvm.RelvmRecursionError, /./);
  assert.equal(await program.run("deep", [5000]), 5000n);
});

test("two runs of the same model with a seed draw the same numbers", async () => {
  program.seed(5);
  const first = await program.run("random");
  program.seed(5);
  assert.equal(await program.run("random"), first);
  assert.notEqual(await program.run("random"), first);
});

test("the program prints", async () => {
  const printed = [];
  const model = await load(path("print.rvm"), { print: (...values) => printed.push(values) });
  await model.run("main", [tensor(Float32Array.of(1))]);
  assert.deepEqual(printed, [[tensor(Float32Array.of(1)), 2n]]);
  await (await load(path("print.rvm"))).run("main", [1n]);
});

const network = [floats(2 * 3 * 256, [2, 3, 16, 16]), floats(8 * 27, [8, 3, 3, 3]), floats(20480, [2048, 10])];

test("native code and kernel bytecode give the same results", async () => {
  const results = [];
  for (const name of ["native.rvm", "bytecode.wasm", "native.wasm"]) {
    const model = await load(path(name));
    results.push(await model.run("main", network));
    assert.equal(await model.run("loop", [1000]), 332833500n);
    model.dispose();
  }
  assert.deepEqual(results[1], results[0]);
  assert.deepEqual(results[2], results[0]);
});

test("a profile has the calls of a run", async () => {
  const model = await load(path("native.rvm"));
  const { result, calls } = await model.profile("main", network);
  assert.deepEqual(result, await model.run("main", network));
  const kernels = calls.filter(({ kind }) => kind === "kernel");
  assert.equal(kernels.length, 3);
  assert.ok(calls.every(({ milliseconds }) => milliseconds >= 0));
  assert.deepEqual(kernels[0].arguments.map(({ shape, dtype, bytes }) => [shape, dtype, bytes]), [
    [[2, 3, 16, 16], "f32", 6144], [[8, 3, 3, 3], "f32", 864], [[2, 8, 16, 16], "f32", 16384],
  ]);
  const storage = calls.find(({ name }) => name === "vm.builtin.alloc_storage");
  assert.ok(storage.result.bytes >= 16384);
  const inside = kernels[0].arguments[2].address - storage.result.address;
  assert.ok(inside >= 0 && inside < storage.result.bytes);
});

test("deep recursion in native code is an error", async () => {
  const model = await load(path("native.wasm"));
  assert.equal(await model.run("deep", [100]), 100n);
  await fails(() => model.run("deep", [1e6]), relvm.RelvmRecursionError, /./);
});

test("a thousand runs do not need more memory", async () => {
  for (const name of ["native.rvm", "native.wasm"]) {
    const model = await load(path(name));
    const bad = [floats(4, [4]), network[1], network[2]];
    const run = async () => {
      model.runSync("main", network);
      assert.throws(() => model.runSync("main", bad));
    };
    for (let i = 0; i < 10; i++) await run();
    const before = model.memoryBytes;
    for (let i = 0; i < 1000; i++) await run();
    assert.equal(model.memoryBytes, before);
  }
  const strings = [tensor(Array.from({ length: 100 }, (_, i) => "x".repeat(i))), tensor(Array(100).fill("y"))];
  for (let i = 0; i < 10; i++) program.runSync("words", strings);
  const before = program.memoryBytes;
  for (let i = 0; i < 1000; i++) {
    program.runSync("words", strings);
    program.runSync("adder", [floats(1000)]).dispose();
  }
  assert.equal(program.memoryBytes, before);
});

test("a model that was disposed of cannot run", async () => {
  const model = await load(path("program.rvm"));
  model.dispose();
  model.dispose();
  await fails(() => model.run("spin", [1]), relvm.RelvmArgumentError, /disposed/);
});

test("all kinds of sources", async () => {
  const file = readFileSync(path("program.rvm"));
  const server = createServer((request, response) => {
    response.statusCode = request.url === "/model" ? 200 : 404;
    response.end(file);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}`;
  const sources = [file, file.buffer.slice(file.byteOffset, file.byteOffset + file.length), new Blob([file]), pathToFileURL(path("program.rvm")),
    pathToFileURL(path("program.rvm")).href, `${url}/model`, await fetch(`${url}/model`)];
  for (const source of sources) assert.equal(await (await load(source)).run("spin", [3]), 3n);
  await fails(() => load(`${url}/none`), relvm.RelvmArgumentError, /404/);
  server.close();
  const module = await WebAssembly.compile(readFileSync(path("native.wasm")));
  assert.equal(await (await load(module)).run("loop", [3]), 5n);
  for (const runtime of [readFileSync(`${PACKAGE}/relvm.wasm`), await WebAssembly.compile(readFileSync(`${PACKAGE}/relvm.wasm`))])
    assert.equal(await (await load(file, { runtime })).run("spin", [3]), 3n);
});

test("a worker", async () => {
  writeFileSync(`${MODELS}/worker.mjs`, `
    import { parentPort } from "node:worker_threads";
    const { load, tensor } = await import(${JSON.stringify(pathToFileURL(`${PACKAGE}/relvm.js`).href)});
    const model = await load(${JSON.stringify(path("program.rvm"))});
    parentPort.postMessage((await model.run("adder", [tensor(Float32Array.of(1))])) instanceof Object);
    parentPort.postMessage(await model.run("integers", [tensor(BigInt64Array.of(2n)), tensor(Uint8Array.of(1))]));`);
  const worker = new Worker(`${MODELS}/worker.mjs`);
  const messages = [];
  await new Promise((resolve, reject) => {
    worker.on("message", (message) => messages.push(message) === 2 && resolve());
    worker.on("error", reject);
  });
  assert.deepEqual(messages[1][0].data, BigInt64Array.of(4n));
  await worker.terminate();
});

test("the classes of errors are those of the runtime", async () => {
  const { exports } = await WebAssembly.instantiate(await WebAssembly.compile(readFileSync(`${PACKAGE}/relvm.wasm`)), {
    relvm: { print() {}, before() {}, after() {} },
    wasi_snapshot_preview1: { clock_time_get: () => 0, random_get: () => 0, sched_yield: () => 0 },
  });
  const types = readFileSync(`${PACKAGE}/relvm.d.ts`, "utf8");
  const text = (address) => {
    const memory = new Uint8Array(exports.memory.buffer);
    return new TextDecoder().decode(memory.subarray(address, memory.indexOf(0, address)));
  };
  const names = (nameOf) => {
    const found = [];
    for (let i = 0, address; (address = nameOf(i)); i++) found.push(text(address));
    return found;
  };
  for (const name of names(exports.relvm_error_name).filter(Boolean)) {
    assert.ok(relvm[name]?.prototype instanceof relvm.RelvmError, name);
    assert.match(types, new RegExp(`class ${name} extends RelvmError`));
  }
  const dtypes = /export type Dtype =([^;]*);/.exec(types)[1].match(/\w+/g);
  assert.deepEqual(dtypes, names(exports.relvm_dtype_name));
});
