"use strict";
// The timeline of a run: a row for each kind of calls, and a bar for each call.  A click on a bar shows its kernel.

const ROW = 22, AXIS = 18, LABELS = 70; // pixels: height of a row and of the axis, width of the names of rows
const timeline = data.timeline;
const calls = timeline.calls.map(([name, kind, start, length, bytes, depth]) =>
  ({ name: timeline.names[name], hue: (name * 137.5) % 360, kind, start, length, bytes, depth })); // times in microseconds
const canvas = document.querySelector("#timeline canvas");
const callText = document.getElementById("call");
const rowKeys = [...new Set(calls.map(({ depth, kind }) => `${depth} ${kind}`))].sort();
const rowOf = (call) => rowKeys.indexOf(`${call.depth} ${call.kind}`);
const end = calls.reduce((latest, call) => Math.max(latest, call.start + call.length), 0) || 1;
let from = 0, to = end; // what is visible
let chosen = null; // the call that was clicked

document.getElementById("timeline-title").textContent =
  `${timeline.function}: ${calls.length} calls${timeline.omitted ? `, without ${timeline.omitted} others` : ""}`;
canvas.style.height = `${ROW * rowKeys.length + AXIS}px`;

const plotWidth = () => canvas.clientWidth - LABELS;
const xOf = (time) => LABELS + (time - from) / (to - from) * plotWidth();
const timeAt = (x) => from + (x - LABELS) / plotWidth() * (to - from);
const duration = (time) => (time >= 1000 ? `${(time / 1000).toPrecision(4)} ms` : `${time.toPrecision(4)} µs`);

function draw() {
  const scale = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
  context.scale(scale, scale);
  context.font = "12px system-ui, sans-serif";
  context.fillStyle = style.color;
  rowKeys.forEach((key, row) => context.fillText(key.split(" ")[1], 8, ROW * row + 15));
  drawAxis(context, height);
  const filled = rowKeys.map(() => -1); // up to which pixel a row has bars; short calls share a pixel
  for (const call of calls) {
    const row = rowOf(call), x = Math.max(LABELS, xOf(call.start)), right = Math.min(width, xOf(call.start + call.length));
    if (right < LABELS || x > width || right <= filled[row]) continue;
    const wide = Math.max(right - x, 1);
    filled[row] = Math.floor(x + wide);
    context.fillStyle = `hsl(${call.hue} 45% 38%)`;
    context.fillRect(x, ROW * row + 2, wide > 3 ? wide - 1 : wide, ROW - 4);
    if (call === chosen) {
      context.strokeStyle = style.color;
      context.lineWidth = 2;
      context.strokeRect(x, ROW * row + 2, wide, ROW - 4);
    }
    if (wide > 40) drawName(context, call.name, x + 4, ROW * row + 15, wide - 8);
  }
}

function drawName(context, name, x, y, width) {
  let text = name;
  if (context.measureText(text).width > width) {
    const letters = Math.floor(width / context.measureText(name).width * name.length) - 1;
    text = `${name.slice(0, Math.max(0, letters))}…`;
  }
  context.fillStyle = "white";
  context.fillText(text, x, y);
}

// Times at round steps of 1, 2 or 5 times a power of ten.
function drawAxis(context, height) {
  const rough = (to - from) / Math.max(1, plotWidth() / 120), power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
  for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
    context.fillRect(xOf(time), 0, 0.5, height - AXIS + 4);
    context.fillText(time === 0 ? "0" : duration(time), Math.min(xOf(time) + 3, canvas.clientWidth - 60), height - 4);
  }
}

function showTimes(first, length) {
  const wide = Math.min(end, Math.max(end * 1e-6, length));
  from = Math.min(end - wide, Math.max(0, first));
  to = from + wide;
  draw();
}

// Zoom so that the time at the pixel x stays there.
function zoom(factor, x) {
  const time = timeAt(x), length = Math.min(end, Math.max(end * 1e-6, (to - from) * factor));
  showTimes(time - (x - LABELS) / plotWidth() * length, length);
}

// The call below the pointer: the nearest one, for bars that are narrower than a pixel.
function callAt(event) {
  const row = Math.floor(event.offsetY / ROW), time = timeAt(event.offsetX), near = (to - from) / plotWidth() * 2;
  const distance = (call) => Math.max(call.start - time, time - call.start - call.length, 0);
  let best = null;
  for (const call of calls) if (rowOf(call) === row && distance(call) <= near && (!best || distance(call) < distance(best))) best = call;
  return best;
}

function describe(call) {
  callText.textContent = call ? `${call.name}: ${duration(call.length)} at ${duration(call.start)}, ${call.bytes.toLocaleString()} bytes` : "";
}

// Show the kernel of a call in the right pane: its bytecode, or its C code if the page has no bytecode of it.
function showKernel(call) {
  chosen = call;
  draw();
  describe(call);
  const starts = { kernels: `kernel ${call.name}`, c: `rvm_status kernel_${call.name}(` };
  for (const [name, start] of Object.entries(starts)) {
    const stage = stages.findIndex((each) => each.name === name);
    const line = stage < 0 ? -1 : stages[stage].lines.findIndex((text) => text === start || (name === "c" && text.startsWith(start)));
    if (line < 0) continue;
    choose(stage);
    select("right", line);
    link();
    return;
  }
}

let drag = null; // {x, from}: where a drag began
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, from, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) { describe(callAt(event) ?? chosen); return; }
  if (Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
  if (drag.moved) showTimes(drag.from - (event.offsetX - drag.x) / plotWidth() * (to - from), to - from);
});
canvas.addEventListener("pointerup", (event) => {
  const call = drag?.moved ? null : callAt(event);
  drag = null;
  if (call) showKernel(call);
});
canvas.addEventListener("wheel", (event) => { zoom(1.0015 ** event.deltaY, event.offsetX); event.preventDefault(); }, { passive: false });
canvas.addEventListener("keydown", (event) => {
  const middle = LABELS + plotWidth() / 2, step = (to - from) / 5;
  const actions = {
    "+": () => zoom(0.5, middle), "-": () => zoom(2, middle), 0: () => showTimes(0, end),
    ArrowLeft: () => showTimes(from - step, to - from), ArrowRight: () => showTimes(from + step, to - from),
  };
  if (!Object.hasOwn(actions, event.key)) return;
  actions[event.key]();
  event.preventDefault();
  event.stopPropagation();
});
new ResizeObserver(draw).observe(canvas);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
document.querySelector("[data-setting=theme]").addEventListener("change", draw);
