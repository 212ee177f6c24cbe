"use strict";
// One page for one exploration: a list of stages, two of them side by side, and what each line came from and became.
const data = JSON.parse(document.getElementById("data").textContent);
const stages = data.stages;
const panes = { left: document.getElementById("left"), right: document.getElementById("right") };
const shown = { left: 0, right: 0 }; // the numbers of the stages in the panes
const rows = { left: new Map(), right: new Map() }; // the number of a line -> its element
let pinned = null; // the origins that stay lit, or null

// For each stage: an origin -> the numbers of the lines that have it.
for (const stage of stages) {
  stage.places = new Map();
  stage.origins.forEach((origins, line) => {
    for (const origin of origins) {
      if (!stage.places.has(origin)) stage.places.set(origin, []);
      stage.places.get(origin).push(line);
    }
  });
}

function linesOf(stage, origins) {
  const found = new Set();
  for (const origin of origins) for (const line of stage.places.get(origin) ?? []) found.add(line);
  return found;
}

// ---- the panes ----

// Pairs of line numbers, -1 where a side has none: the lines that two texts have in common stand beside each other.
// Myers, "An O(ND) Difference Algorithm and Its Variations".  What differs by more than MAX_EDITS lines is not compared.
const MAX_EDITS = 3000;

function aligned(a, b) {
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const pairs = [];
  for (let i = 0; i < start; i++) pairs.push([i, i]);
  pairs.push(...beside(edits(a.slice(start, endA), b.slice(start, endB)).map(
    ([x, y]) => [x < 0 ? -1 : start + x, y < 0 ? -1 : start + y])));
  for (let i = 0; i < a.length - endA; i++) pairs.push([endA + i, endB + i]);
  return pairs;
}

function edits(a, b) {
  const n = a.length, m = b.length, most = Math.min(n + m, MAX_EDITS);
  const apart = [...a.map((_, x) => [x, -1]), ...b.map((_, y) => [-1, y])];
  const best = new Int32Array(2 * most + 3), zero = most + 1; // how far in `a` the paths on each diagonal get
  const trace = [];
  const isDown = (from, at, d, k) => k === -d || (k !== d && from[at + k - 1] < from[at + k + 1]);
  let d = 0;
  search: for (; ; d++) {
    if (d > most) return apart;
    trace.push(best.slice(zero - d - 1, zero + d + 2));
    for (let k = -d; k <= d; k += 2) {
      let x = isDown(best, zero, d, k) ? best[zero + k + 1] : best[zero + k - 1] + 1;
      while (x < n && x - k < m && a[x] === b[x - k]) x++;
      best[zero + k] = x;
      if (x >= n && x - k >= m) break search;
    }
  }
  const found = [];
  let x = n, y = m;
  for (; d >= 0; d--) {
    const from = trace[d], at = d + 1, k = x - y;
    const down = isDown(from, at, d, k), previous = down ? k + 1 : k - 1;
    const fromX = d === 0 ? 0 : from[at + previous], fromY = d === 0 ? 0 : fromX - previous;
    const [x0, y0] = d === 0 ? [0, 0] : down ? [fromX, fromY + 1] : [fromX + 1, fromY]; // after the edit
    while (x > x0 && y > y0) found.push([--x, --y]);
    if (d > 0) found.push(down ? [-1, --y] : [--x, -1]);
  }
  return found.reverse();
}

// Runs of lines of one side only, the ones of both sides beside each other.
function beside(pairs) {
  const result = [];
  let only = [[], []];
  const flush = () => {
    for (let i = 0; i < Math.max(only[0].length, only[1].length); i++) result.push([only[0][i] ?? -1, only[1][i] ?? -1]);
    only = [[], []];
  };
  for (const [left, right] of pairs) {
    if (left >= 0 && right >= 0) { flush(); result.push([left, right]); }
    else if (left >= 0) only[0].push(left);
    else only[1].push(right);
  }
  flush();
  return result;
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

function fill(side, pairs, texts, other, kind) {
  const stage = stages[shown[side]], at = side === "left" ? 0 : 1;
  const pane = panes[side], box = pane.querySelector(".lines");
  pane.querySelector("h2").innerHTML = `${escaped(stage.name)} <small>${escaped(stage.about)}</small>`;
  box.innerHTML = pairs.map((pair) => {
    const line = pair[at];
    if (line < 0) return '<div class="line filler"> </div>';
    const changed = pair[1 - at] < 0 || (other && other[pair[1 - at]] !== texts[line]);
    return `<div class="line${changed && kind ? ` ${kind}` : ""}" data-n="${line + 1}">${escaped(texts[line]) || " "}</div>`;
  }).join("");
  rows[side] = new Map();
  for (const element of box.children) if (element.dataset.n) rows[side].set(Number(element.dataset.n) - 1, element);
}

function show() {
  const left = stages[shown.left], right = stages[shown.right];
  const compared = document.getElementById("diff").checked && left.ir && right.ir && left !== right;
  if (compared) {
    const pairs = aligned(left.lines, right.lines);
    fill("left", pairs, left.lines, right.lines, "removed");
    fill("right", pairs, right.lines, left.lines, "added");
  } else {
    for (const side of ["left", "right"]) {
      const texts = stages[shown[side]].lines;
      fill(side, texts.map((_, line) => [line, line]), texts, null, "");
    }
  }
  document.body.dataset.compared = compared;
  buttons.forEach((button, number) => {
    button.classList.toggle("left", number === shown.left);
    button.classList.toggle("right", number === shown.right);
  });
  light(pinned ?? []);
  search();
}

let scrolling = null; // the pane that the other one follows
for (const side of ["left", "right"]) {
  const box = panes[side].querySelector(".lines");
  const other = panes[side === "left" ? "right" : "left"].querySelector(".lines");
  box.addEventListener("pointerenter", () => { scrolling = side; });
  box.addEventListener("scroll", () => {
    if (scrolling === side && document.body.dataset.compared === "true") other.scrollTop = box.scrollTop;
  });
}

// ---- where lines come from ----

function light(origins) {
  for (const element of document.querySelectorAll(".line.lit, .line.pinned")) element.classList.remove("lit", "pinned");
  const kind = pinned ? "pinned" : "lit";
  for (const side of ["left", "right"])
    for (const line of linesOf(stages[shown[side]], origins)) rows[side].get(line)?.classList.add(kind);
  buttons.forEach((button, number) => {
    const count = origins.length ? linesOf(stages[number], origins).size : 0;
    button.querySelector(".count").textContent = count || "";
  });
  document.getElementById("place").textContent = origins.map((origin) => data.origins[origin]).slice(0, 3).join("   ");
}

function lineAt(event, side) {
  const element = event.target.closest(".line[data-n]");
  return element ? Number(element.dataset.n) - 1 : -1;
}

for (const side of ["left", "right"]) {
  const box = panes[side].querySelector(".lines");
  box.addEventListener("mouseover", (event) => {
    const line = lineAt(event, side);
    if (!pinned && line >= 0) light(stages[shown[side]].origins[line]);
  });
  box.addEventListener("mouseleave", () => { if (!pinned) light([]); });
  box.addEventListener("click", (event) => {
    const line = lineAt(event, side);
    if (line < 0 || String(getSelection())) return;
    const origins = stages[shown[side]].origins[line];
    pinned = origins.length ? origins : null;
    light(pinned ?? []);
    const other = side === "left" ? "right" : "left";
    const [first] = [...linesOf(stages[shown[other]], pinned ?? [])].sort((a, b) => a - b);
    scrolling = null;
    rows[other].get(first)?.scrollIntoView({ block: "center" });
  });
}

// ---- the search ----

function search() {
  for (const element of document.querySelectorAll(".line.hit")) element.classList.remove("hit");
  const wanted = document.getElementById("search").value.toLowerCase();
  if (!wanted) { if (!pinned) light([]); return; }
  stages.forEach((stage, number) => {
    const hits = stage.lines.reduce((all, text, line) => (text.toLowerCase().includes(wanted) ? [...all, line] : all), []);
    buttons[number].querySelector(".count").textContent = hits.length || "";
    for (const side of ["left", "right"]) {
      if (shown[side] !== number) continue;
      for (const line of hits) rows[side].get(line)?.classList.add("hit");
      rows[side].get(hits[0])?.scrollIntoView({ block: "center" });
    }
  });
}

// ---- the list of stages ----

const buttons = stages.map((stage, number) => {
  const button = document.createElement("button");
  button.className = stage.changed ? "stage" : "stage same";
  button.title = `${stage.about}\nA click: this stage on the right, the one before on the left.  With Shift: only on the left.`;
  button.innerHTML = `<span class="changed">${stage.changed ? "●" : ""}</span><span>${escaped(stage.name)}</span>` +
    `<span class="count"></span><span class="ms">${stage.ms.toFixed(1)}</span>`;
  button.addEventListener("click", (event) => choose(number, event.shiftKey));
  document.getElementById("stages").append(button);
  return button;
});

function choose(number, leftOnly) {
  if (leftOnly) shown.left = number;
  else { shown.right = number; shown.left = Math.max(0, number - 1); }
  show();
}

document.getElementById("search").addEventListener("input", search);
document.getElementById("diff").addEventListener("change", show);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { pinned = null; light([]); search(); }
  if (event.target.id === "search" || !["ArrowUp", "ArrowDown"].includes(event.key) || event.target.closest(".lines")) return;
  choose(Math.min(stages.length - 1, Math.max(0, shown.right + (event.key === "ArrowDown" ? 1 : -1))), false);
  event.preventDefault();
});
choose(Math.min(1, stages.length - 1), false);
