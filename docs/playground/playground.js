import { List, Shape, Tensor, load, toFloat16 } from "./relvm.js";

const SAMPLE = "sample.rvm";
const ARRAYS = { f32: Float32Array, f64: Float64Array, i64: BigInt64Array, i32: Int32Array, i16: Int16Array, i8: Int8Array, u64: BigUint64Array, u32: Uint32Array, u16: Uint16Array, u8: Uint8Array, bool: Uint8Array, f16: Uint16Array };
const MAX_SHOWN = 24; // elements of a result
const MAX_ELEMENTS = 1e8; // of an input
const $ = (id) => document.getElementById(id);
let model;
let chosen;

function element(tag, attributes = {}, ...children) {
  const made = document.createElementNS(/^(svg|rect|text|g|title)$/.test(tag) ? "http://www.w3.org/2000/svg" : "http://www.w3.org/1999/xhtml", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function report(text, isError = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", isError);
}

const bytesText = (bytes) => (bytes < 1e4 ? `${bytes} B` : bytes < 1e7 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`);

async function open(source, name) {
  try {
    report(`Loading ${name} …`);
    const bytes = source instanceof Blob ? source.size : 0;
    const next = await load(source);
    model?.dispose();
    model = next;
    $("empty").hidden = true;
    $("content").hidden = false;
    showFunctions();
    report(`${name}${bytes ? `, ${bytesText(bytes)}` : ""}`);
    await runChosen();
  } catch (error) {
    report(`${name}: ${error.name}: ${error.message}`, true);
  }
}

function showFunctions() {
  const rows = model.functions.map(({ name, parameters, result }) => {
    const row = element("tr", { "data-function": name });
    const shown = parameters.flatMap((parameter, i) => [i ? ", " : "", `${parameter.name}: `, element("span", { class: "type" }, parameter.type)]);
    row.append(element("td", {}, name), element("td", {}, "(", ...shown, ") → ", element("span", { class: "type" }, result)));
    row.addEventListener("click", () => choose(name));
    return row;
  });
  $("functions").replaceChildren(element("table", {}, ...rows));
  choose((model.functions.find(({ name }) => name === "main") ?? model.functions[0]).name);
}

/** Return the names of the sizes in the types of parameters, such as n in f32[n, 4]. */
function symbols(parameters) {
  const found = parameters.flatMap(({ type }) => type.match(/[\[(,][^\[\]]*/g) ?? []).join(" ");
  return [...new Set(found.match(/\b[A-Za-z_]\w*\b/g) ?? [])].filter((name) => !(name in ARRAYS) && !/^(str|list|optional|shape|object)$/.test(name));
}

function choose(name) {
  chosen = model.functions.find((each) => each.name === name);
  for (const row of $("functions").querySelectorAll("tr")) row.classList.toggle("chosen", row.dataset.function === name);
  const fields = symbols(chosen.parameters).map((size) => ["size", size, "2"]);
  for (const { name: parameter, type } of chosen.parameters) {
    if (type === "i64" || /^i64\(/.test(type)) fields.push(["value", parameter, "2"]);
    else if (type === "f64") fields.push(["value", parameter, "0.5"]);
    else if (type === "bool") fields.push(["value", parameter, "true"]);
    else if (/^str\[/.test(type)) fields.push(["value", parameter, "hello"]);
  }
  const inputs = fields.flatMap(([kind, field, value]) => [
    element("label", { for: `${kind}-${field}` }, kind === "size" ? `size ${field}` : field),
    element("input", { id: `${kind}-${field}`, value }),
  ]);
  $("inputs").replaceChildren(...inputs, element("button", {}, "Run with random tensors"));
  $("result").textContent = "";
}

/** Return the value of a size expression such as n * 2 + 1, given the values of the size fields. */
function sizeOf(text, type) {
  const tokens = text.match(/\d+|[A-Za-z_]\w*|\/\/|[-+*%()]/g) ?? [];
  if (tokens.join("") !== text.replaceAll(" ", "")) throw new Error(`this page cannot compute the size ${text} of ${type}`);
  let at = 0;
  const primary = () => {
    const token = tokens[at++];
    if (token === "(") {
      const value = sum();
      at++;
      return value;
    }
    if (token === "-") return -primary();
    return /^\d/.test(token) ? Number(token) : Number($(`size-${token}`)?.value ?? $(`value-${token}`)?.value);
  };
  const product = () => {
    let value = primary();
    while (["*", "//", "%"].includes(tokens[at])) {
      const operator = tokens[at++];
      const right = primary();
      value = operator === "*" ? value * right : operator === "//" ? Math.floor(value / right) : ((value % right) + right) % right;
    }
    return value;
  };
  const sum = () => {
    let value = product();
    while (["+", "-"].includes(tokens[at])) value = tokens[at++] === "+" ? value + product() : value - product();
    return value;
  };
  const value = sum();
  if (!Number.isSafeInteger(value) || value < 0) throw new Error(`the size ${text} must be a number of at least 0`);
  return value;
}

/** Return a random value of a type. */
function randomValue({ name, type }) {
  const field = $(`value-${name}`);
  if (type === "f64") return Number(field.value);
  if (type === "bool") return field.value === "true";
  if (/^i64($|\()/.test(type)) return BigInt(field?.value ?? $(`size-${/\w+(?=\)$)/.exec(type)?.[0]}`).value);
  const parts = /^(\w+)\[([^\[\]]*)\]$/.exec(type);
  if (!parts) throw new Error(`this page cannot make a value of type ${type} for ${name}`);
  const shape = parts[2].trim() ? parts[2].split(",").map((dim) => sizeOf(dim.trim() === "_" ? "2" : dim.trim(), type)) : [];
  if (parts[1] === "shape") return Shape.from(shape);
  const count = shape.reduce((product, dim) => product * dim, 1);
  if (count > MAX_ELEMENTS) throw new Error(`${name} would have ${count} elements; this page makes at most ${MAX_ELEMENTS}`);
  if (parts[1] === "str") return new Tensor(Array(count).fill(field.value), shape, "str");
  const Array_ = ARRAYS[parts[1]];
  if (!Array_) throw new Error(`this page cannot make a value of type ${type} for ${name}`);
  const isFloat = parts[1].startsWith("f");
  const numbers = Float32Array.from({ length: count }, () => (isFloat ? Math.random() * 2 - 1 : Math.floor(Math.random() * 2)));
  if (parts[1] === "f16") return new Tensor(toFloat16(numbers), shape, "f16");
  const isBig = /64$/.test(parts[1]) && !isFloat;
  return new Tensor(isBig ? Array_.from(numbers, (x) => BigInt(x)) : Array_.from(numbers), shape, parts[1]);
}

function describe(value, indent = "") {
  if (value instanceof Tensor) {
    const shown = Array.from(value.data.slice(0, MAX_SHOWN), (x) => (typeof x === "number" ? String(Number(x.toPrecision(6))) : typeof x === "string" ? JSON.stringify(x) : String(x)));
    return `${value.dtype}[${value.shape.join(", ")}] ${shown.join(" ")}${value.data.length > MAX_SHOWN ? " …" : ""}`;
  }
  if (value instanceof Shape) return `shape[${value.join(", ")}]`;
  if (Array.isArray(value)) return `${value instanceof List ? "list" : "tuple"} of ${value.length}${value.map((item) => `\n${indent}  ${describe(item, `${indent}  `)}`).join("")}`;
  return typeof value === "object" && value !== null ? "a function" : String(value);
}

async function runChosen() {
  try {
    const inputs = chosen.parameters.map(randomValue);
    model.runSync(chosen.name, inputs); // the browser compiles the code
    const start = performance.now();
    const result = model.runSync(chosen.name, inputs);
    const milliseconds = performance.now() - start;
    const { calls } = await model.profile(chosen.name, inputs);
    $("result").textContent = `${describe(result)}\n${milliseconds.toFixed(2)} ms, ${bytesText(model.memoryBytes)} of memory`;
    showKernels(calls);
    showMemory(calls);
  } catch (error) {
    $("result").textContent = `${error.name}: ${error.message}${error.trace ? `\n${error.trace}` : ""}`;
  }
}

function showKernels(calls) {
  const totals = new Map();
  for (const { name, kind, milliseconds } of calls) {
    const row = totals.get(name) ?? { name, kind, count: 0, milliseconds: 0 };
    row.count++;
    row.milliseconds += milliseconds;
    totals.set(name, row);
  }
  const rows = [...totals.values()].filter(({ kind }) => kind === "kernel").sort((a, b) => b.milliseconds - a.milliseconds);
  const most = Math.max(...rows.map(({ milliseconds }) => milliseconds), 1e-9);
  const total = rows.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
  $("total").textContent = `${rows.length}, ${total.toFixed(2)} ms in one run`;
  const head = element("tr", {}, ...["kernel", "calls", "ms", ""].map((title) => element("th", {}, title)));
  const body = rows.map(({ name, count, milliseconds }) =>
    element("tr", {}, element("td", {}, name), element("td", { class: "number" }, String(count)), element("td", { class: "number" }, milliseconds.toFixed(3)),
      element("td", { class: "bar" }, element("span", { style: `width: ${(100 * milliseconds) / most}%` }))));
  $("kernels").replaceChildren(element("table", {}, head, ...body));
}

/** Return the tensors that a run keeps in storages: their offset in all storages, and the kernels that use them. */
function boxes(calls) {
  const storages = [];
  const found = [];
  let time = -1;
  let end = 0;
  for (const { name, kind, arguments: places, result } of calls) {
    if (result?.kind === "storage") {
      const known = storages.findLast(({ address, bytes }) => address === result.address && bytes >= result.bytes);
      storages.push(known ?? { address: result.address, bytes: result.bytes, offset: end });
      if (!known) end += result.bytes;
    }
    if (kind !== "kernel") continue;
    time++;
    places.forEach((place, i) => {
      if (place?.kind !== "tensor" || place.bytes === 0) return;
      const storage = storages.findLast(({ address, bytes }) => place.address >= address && place.address < address + bytes);
      if (!storage) return;
      const offset = storage.offset + place.address - storage.address;
      const last = found.findLast((box) => box.offset === offset && box.bytes === place.bytes);
      const isOutput = i === places.length - 1; // of a kernel, the result is the last argument
      if (last && !isOutput) last.last = time;
      else found.push({ name, offset, bytes: place.bytes, dtype: place.dtype, shape: place.shape, first: time, last: time });
    });
  }
  return { found, end, times: time + 1, storages: [...new Set(storages)] };
}

function showMemory(calls) {
  const { found, end, times, storages } = boxes(calls);
  if (!end) {
    $("peak").textContent = "";
    $("memory").replaceChildren(element("p", {}, "This run keeps no tensors in storages."));
    return;
  }
  const [width, height, left] = [640, 300, 60];
  const x = (time) => left + ((width - left) * time) / times;
  const y = (offset) => height - (height * offset) / end;
  const svg = element("svg", { viewBox: `0 0 ${width} ${height + 18}`, role: "img" });
  for (const { offset, bytes } of storages)
    svg.append(element("rect", { class: "frame", x: left, y: y(offset + bytes), width: width - left, height: y(offset) - y(offset + bytes) }));
  for (const box of found) {
    const [boxWidth, boxHeight] = [x(box.last + 1) - x(box.first), y(box.offset) - y(box.offset + box.bytes)];
    const label = `${box.dtype}[${box.shape.join(", ")}]`;
    const group = element("g", {}, element("rect", { class: "box", x: x(box.first), y: y(box.offset + box.bytes), width: boxWidth, height: boxHeight }),
      element("title", {}, `${label}, ${bytesText(box.bytes)}, from ${box.name}`));
    if (boxHeight > 11 && boxWidth > 6 * label.length) group.append(element("text", { x: x(box.first) + 3, y: y(box.offset + box.bytes) + 10 }, label));
    svg.append(group);
  }
  svg.append(element("text", { class: "axis", x: 0, y: 10 }, bytesText(end)), element("text", { class: "axis", x: left, y: height + 14 }, `calls of kernels: 1 to ${times}`));
  $("peak").textContent = `${storages.length} storages, ${bytesText(end)}`;
  $("memory").replaceChildren(svg);
}

$("file").addEventListener("change", ({ target }) => target.files[0] && open(target.files[0], target.files[0].name));
$("sample").addEventListener("click", async () => open(await (await fetch(SAMPLE)).blob(), SAMPLE));
$("inputs").addEventListener("submit", (event) => {
  event.preventDefault();
  runChosen();
});
for (const kind of ["dragenter", "dragover"])
  $("drop").addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
$("drop").addEventListener("dragleave", () => $("drop").classList.remove("over"));
$("drop").addEventListener("drop", (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  const file = event.dataTransfer.files[0];
  if (file) open(file, file.name);
});
