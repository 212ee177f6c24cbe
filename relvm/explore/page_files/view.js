"use strict";
// One page for one exploration: a list of stages, two of them side by side, and what each line came from and became.
const data = JSON.parse(document.getElementById("data").textContent);
let stages = data.stages;
let origins = data.origins; // the source locations, which the stages have by number
const SIDES = ["left", "right"];
const panes = { left: document.getElementById("left"), right: document.getElementById("right") };
const boxes = { left: panes.left.querySelector(".lines"), right: panes.right.querySelector(".lines") };
const shown = { left: 0, right: 0 }; // the numbers of the stages in the panes
const rows = { left: new Map(), right: new Map() }; // the number of a line -> its element
const partners = { left: new Map(), right: new Map() }; // of a changed line: the line beside it
let selected = null; // {side, line}: the line that was clicked, or null
let pinned = null; // the origins that stay lit, or null
let active = "right"; // the pane that keys and scrolling refer to

const otherSide = (side) => (side === "left" ? "right" : "left");

// For each stage: an origin -> the numbers of the lines that have it.
function index() {
  for (const stage of stages) {
    stage.places = new Map();
    stage.origins.forEach((ofLine, line) => {
      for (const origin of ofLine) {
        if (!stage.places.has(origin)) stage.places.set(origin, []);
        stage.places.get(origin).push(line);
      }
    });
  }
}

function linesOf(stage, wanted) {
  const found = new Set();
  for (const origin of wanted) for (const line of stage.places.get(origin) ?? []) found.add(line);
  return found;
}

// ---- the panes ----

const CHUNK = 100; // lines; the browser lays out, and this script colors, only chunks that are near the screen

// alignment: the result of `aligned`, or null.
function fill(side, alignment) {
  const stage = stages[shown[side]], at = side === "left" ? 0 : 1, texts = stage.lines;
  const pairs = alignment?.pairs ?? texts.map((_, line) => [line, line]), kinds = alignment?.kinds[at] ?? [];
  const groups = alignment?.groups[at] ?? (stage.ir ? fusedGroups(texts).of : []);
  const classOf = { changed: side === "left" ? "removed" : "added", moved: "moved", frame: "frame" };
  panes[side].querySelector("h2").innerHTML = `${escaped(stage.name)} <small>${escaped(stage.about)}</small>`;
  panes[side].querySelector("h2").title = stage.about;
  partners[side] = new Map();
  const html = [];
  for (let first = 0; first < pairs.length; first += CHUNK) {
    const chunk = pairs.slice(first, first + CHUNK);
    html.push(`<div class="chunk" style="contain-intrinsic-size: auto 100px auto ${18 * chunk.length}px">`);
    for (const pair of chunk) {
      const line = pair[at], other = pair[1 - at];
      if (line < 0) { html.push('<div class="line filler"></div>'); continue; }
      if (kinds[line] && other >= 0) partners[side].set(line, other);
      const names = ["line", stage.origins[line].length && "traced", classOf[kinds[line]], groups[line] >= 0 && "grouped"];
      html.push(`<div class="${names.filter(Boolean).join(" ")}" data-n="${line + 1}"><code>${escaped(texts[line])}</code>${timeHtml(stage, texts[line])}</div>`);
    }
    html.push("</div>");
  }
  boxes[side].innerHTML = html.join("");
  boxes[side].classList.toggle("timed", boxes[side].querySelector(".time") !== null);
  rows[side] = new Map();
  for (const element of boxes[side].querySelectorAll(".line[data-n]")) rows[side].set(Number(element.dataset.n) - 1, element);
  observers[side].disconnect();
  near[side].clear();
  for (const chunk of boxes[side].children) observers[side].observe(chunk);
}

// Lines get their colors when they come near the screen, and again when what is marked in them has changed.
const near = { left: new Set(), right: new Set() };
let version = 0;
const observers = Object.fromEntries(SIDES.map((side) => [side, new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (isIntersecting) { near[side].add(target); paint(side, target); }
    else near[side].delete(target);
  }
}, { root: boxes[side], rootMargin: "600px" })]));

function paint(side, chunk) {
  if (chunk.version === version) return;
  chunk.version = version;
  const stage = stages[shown[side]], others = stages[shown[otherSide(side)]].lines;
  const table = KINDS[stage.name];
  for (const element of chunk.children) {
    if (!element.dataset.n) continue;
    const line = Number(element.dataset.n) - 1, text = stage.lines[line], other = partners[side].get(line);
    const marks = other === undefined ? [] : changedWords(text, others[other]).map((range) => [...range, "word"]);
    if (stage.ir) colorModule(element, text, marks);
    else element.firstChild.innerHTML = colored(text, table, [...marks, ...hitsIn(text)]);
  }
}

// Show a line of a module: in short, with its type at the end, or in full.   marks: the words that have changed.
function colorModule(element, text, marks) {
  const isShort = !settings.names, type = isShort ? typeRange(text) : null;
  element.firstChild.innerHTML = colored(text, KINDS.ir, [...marks, ...hitsIn(text)], isShort ? shortParts(text) : []);
  element.title = type ? text.slice(type[0] + 2, type[1]) : "";
  element.classList.toggle("new-type", Boolean(type) && marks.some(([start]) => start >= type[0] && start < type[1]));
  if (type) element.dataset.type = shortType(text);
  else delete element.dataset.type;
}

function repaint() {
  version++;
  for (const side of SIDES) for (const chunk of near[side]) paint(side, chunk);
}

// Scroll an element of a pane into view.  Unlike scrollIntoView, this does not scroll a page that contains this one.
function scrollInside(pane, element, block) {
  const box = pane.getBoundingClientRect(), { top, bottom } = element.getBoundingClientRect();
  if (block === "center") pane.scrollTop += (top + bottom - box.top - box.bottom) / 2;
  else if (top < box.top) pane.scrollTop += top - box.top;
  else if (bottom > box.bottom) pane.scrollTop += bottom - box.bottom;
}

function show() {
  const left = stages[shown.left], right = stages[shown.right];
  const compared = settings.diff && left.ir && right.ir && left !== right;
  const alignment = compared ? aligned(left, right) : null;
  version++;
  fill("left", alignment);
  fill("right", alignment);
  document.body.dataset.compared = compared;
  buttons.forEach((button, number) => {
    button.classList.toggle("left", number === shown.left);
    button.classList.toggle("right", number === shown.right);
  });
  const button = buttons[shown.right];
  scrollInside(button.parentElement, button, "nearest");
  mark();
}

function activate(side) {
  active = side;
  for (const each of SIDES) panes[each].classList.toggle("active", each === side);
}

// The other pane follows the active one.  Rows are beside each other, but may differ in height if lines are wrapped.
function follow() {
  const box = boxes[active], other = boxes[otherSide(active)];
  if (document.body.dataset.compared !== "true") return;
  if (!settings.wrap) { other.scrollTop = box.scrollTop; return; }
  const top = box.getBoundingClientRect().top;
  const chunk = [...box.children].findIndex((each) => each.getBoundingClientRect().bottom > top);
  const row = [...(box.children[chunk]?.children ?? [])].findIndex((each) => each.getBoundingClientRect().bottom > top);
  const twin = other.children[chunk]?.children[row];
  if (!twin) return;
  const place = (element) => element.getBoundingClientRect().top;
  other.scrollTop += place(twin) - place(other) - (place(box.children[chunk].children[row]) - top);
}

for (const side of SIDES) {
  boxes[side].addEventListener("pointerenter", () => activate(side));
  boxes[side].addEventListener("focus", () => activate(side));
  boxes[side].addEventListener("scroll", () => { if (side === active) follow(); });
}

// Scroll a line to the middle, unless it is on the screen.
function reveal(side, line) {
  const row = rows[side].get(line);
  if (!row) return;
  const box = boxes[side].getBoundingClientRect(), { top, bottom } = row.getBoundingClientRect();
  if (top >= box.top && bottom <= box.bottom) return;
  scrollInside(boxes[side], row, "center");
  if (side === active) follow();
}

// ---- the times of a run ----

const ownValue = (table, name) => (Object.hasOwn(table, name) ? table[name] : undefined);

// The kernel that a line begins or calls, or "".
function kernelIn(stage, text) {
  if (stage.name === "kernels") return /^kernel (\S+)$/.exec(text)?.[1] ?? "";
  if (stage.name === "c") return /^rvm_status kernel_(\w+)\(.*[^;]$/.exec(text)?.[1] ?? "";
  if (stage.name === "assembly") return /^kernel_(\w+):$/.exec(text)?.[1] ?? "";
  return stage.name === data.graphStage ? ownValue(data.kernels, nameIn(text)) ?? "" : "";
}

// The share of a run's time that a kernel takes.  In a module, several values may be computed by calls of one kernel.
function shareOf(stage, text) {
  const time = data.times && ownValue(data.times.kernels, kernelIn(stage, text));
  return time ? time.seconds / data.times.seconds / (stage.ir ? time.count : 1) : 0;
}

function timeHtml(stage, text) {
  const share = shareOf(stage, text);
  if (share < 0.0005) return "";
  const { count } = data.times.kernels[kernelIn(stage, text)];
  const calls = count === 1 ? "" : stage.ir ? `, the mean of ${count} calls of the kernel` : ` in ${count} calls`;
  const title = `${stageTime(1000 * share * data.times.seconds)} of ${stageTime(1000 * data.times.seconds)}${calls}`;
  return `<span class="time" data-text="${(100 * share).toFixed(1)} %" style="--heat: ${Math.round(90 * Math.sqrt(share))}%" title="${title}"></span>`;
}

// ---- where lines come from ----

const HINT = "Click a line to see what it came from and what it became. Press ? for the keys.";
let lit = []; // the elements that are highlighted
let editorLines = () => []; // the lines of the editor, if there is one, that have some origins

function light(wanted) {
  for (const element of lit) element.classList.remove("lit", "pinned");
  lit = SIDES.flatMap((side) => [...linesOf(stages[shown[side]], wanted)].map((line) => rows[side].get(line)));
  lit.push(...editorLines(wanted));
  for (const element of lit) element.classList.add(pinned ? "pinned" : "lit");
  buttons.forEach((button, number) => {
    const count = linesOf(stages[number], wanted).size;
    button.querySelector(".count").textContent = count || "";
  });
  const names = wanted.map((origin) => origins[origin]);
  const more = names.length > 3 ? [`and ${names.length - 3} more`] : [];
  const short = names.slice(0, 3).map((name) => name.replace(/^[^:']*\/(?=[^/:]+:)/, "")); // without the folder
  setPlace(names.length ? [...short, ...more] : [HINT], names.join("\n"));
}

function setPlace(texts, title) {
  const place = document.getElementById("place");
  place.innerHTML = texts.map((text) => `<span>${escaped(text)}</span>`).join("");
  place.title = title;
}

// Show the selection and the pinned origins.
function mark() {
  document.querySelectorAll(".line.selected").forEach((element) => element.classList.remove("selected"));
  if (selected) rows[selected.side].get(selected.line)?.classList.add("selected");
  light(pinned ?? []);
}

function select(side, line) {
  const stage = stages[shown[side]];
  const wanted = stage.origins[line] ?? [];
  selected = line in stage.lines ? { side, line } : null;
  pinned = selected && wanted.length ? wanted : null;
  activate(side);
  mark();
  if (!selected) return;
  reveal(side, line);
  const related = linesOf(stages[shown[otherSide(side)]], wanted);
  if (related.size) reveal(otherSide(side), Math.min(...related));
}

function unselect() {
  selected = pinned = null;
  mark();
}

function lineAt(event) {
  const element = event.target.closest(".line[data-n]");
  return element ? Number(element.dataset.n) - 1 : -1;
}

for (const side of SIDES) {
  boxes[side].addEventListener("mouseover", (event) => {
    const line = lineAt(event);
    if (!pinned && line >= 0) light(stages[shown[side]].origins[line]);
  });
  boxes[side].addEventListener("mouseleave", () => { if (!pinned) light([]); });
  boxes[side].addEventListener("click", (event) => {
    const line = lineAt(event);
    if (line < 0 || String(getSelection())) return;
    select(side, line);
    link();
  });
}

// ---- the list of stages ----

let buttons = [];

const stageTime = (ms) => (ms >= 1000 ? `${(ms / 1000).toFixed(2)} s` : `${ms.toFixed(1)} ms`);

function list() {
  buttons = stages.map((stage, number) => {
    const button = document.createElement("button");
    button.className = stage.changed ? "stage" : "stage same";
    button.title = `${stage.about}\nClick: show this stage on the right and the previous one on the left. Shift-click: show it on the left.`;
    button.innerHTML = `<span class="changed">${stage.changed ? "●" : ""}</span><span class="name">${escaped(stage.name)}</span>` +
      `<span class="count badge" title="highlighted lines"></span><span class="hits badge" title="hits of the search"></span>` +
      `<span class="ms">${stageTime(stage.ms)}</span>`;
    button.addEventListener("click", (event) => { choose(number, event.shiftKey); link(); });
    return button;
  });
  document.getElementById("stages").replaceChildren(...buttons);
}

index();
list();
nameSizes(data.sizes ?? {});

function choose(number, leftOnly = false) {
  if (leftOnly) shown.left = number;
  else { shown.right = number; shown.left = Math.max(0, number - 1); }
  selected = null; // lines of another stage have other numbers; what is pinned stays
  show();
  if (pinned) for (const side of ["left", "right"]) {
    const related = linesOf(stages[shown[side]], pinned);
    if (related.size) reveal(side, Math.min(...related));
  }
}
