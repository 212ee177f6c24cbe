"use strict";
// Links to a stage and a line, and the keys.

// ---- links: #stage=NAME&compare=NAME&line=NUMBER&side=left&graph=NODE ----

function address() {
  const parts = new URLSearchParams({ stage: stages[shown.right].name });
  if (shown.left !== Math.max(0, shown.right - 1)) parts.set("compare", stages[shown.left].name);
  if (selected) parts.set("line", selected.line + 1);
  if (selected?.side === "left") parts.set("side", "left");
  if (graphNode !== null) parts.set("graph", graphNode);
  return `#${parts}`;
}

// Put what is shown into the address.  replace: without a new entry in the history.
function link({ replace = false } = {}) {
  const url = new URL(location.href);
  url.hash = address();
  if (url.hash === location.hash) return;
  if (replace) location.replace(url);
  else location.assign(url);
}

// Show the module after fusion beside its kernels, or else beside the module before fusion.  If there are times, show the
// kernel that takes most of them.
function chooseFirst() {
  const stageOf = (name) => stages.findIndex((stage) => stage.name === name);
  const lowered = stageOf("lower_to_kernels"), kernels = ["kernels", "c"].map(stageOf).find((stage) => stage >= 0);
  if (lowered < 1) { choose(Math.min(1, stages.length - 1)); return; }
  choose(kernels ?? lowered - 1);
  if (kernels !== undefined) choose(lowered - 1, true);
  for (const side of SIDES) {
    const stage = stages[shown[side]], shares = stage.lines.map((text) => shareOf(stage, text));
    const most = shares.reduce((most, share) => Math.max(most, share), 0);
    if (most > 0) reveal(side, shares.indexOf(most));
  }
}

// Show what the address says.
function restore() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const numberOf = (key) => {
    if (!parts.has(key)) return -1;
    const number = stages.findIndex((stage) => stage.name === parts.get(key));
    if (number < 0) unknown.push(`This page has no stage ${parts.get(key)}.`);
    return number;
  };
  const unknown = [];
  const right = numberOf("stage"), left = numberOf("compare"), side = parts.get("side") === "left" ? "left" : "right";
  pinned = null;
  if (right < 0 && left < 0) chooseFirst();
  else choose(right >= 0 ? right : Math.min(1, stages.length - 1));
  if (left >= 0) choose(left, true);
  const line = Number(parts.get("line")) - 1;
  if (parts.has("line") && !unknown.length) {
    select(side, line);
    if (!selected) unknown.push(`Stage ${stages[shown[side]].name} has no line ${parts.get("line")}.`);
  }
  if (unknown.length) setPlace(unknown, "");
  if (parts.has("graph") && loadGraph) openGraph({ relvm: "node", node: parts.get("graph") });
  else closeGraph();
}

addEventListener("hashchange", () => {
  if (address() !== location.hash && !location.hash.startsWith("#program=")) restore(); // live.js opens programs
});

// ---- keys ----

function move(step) {
  const at = selected?.side === active ? selected.line + step : topLine(active);
  if (!(at in stages[shown[active]].lines)) return;
  select(active, at);
  link({ replace: true });
}

function topLine(side) {
  const top = boxes[side].getBoundingClientRect().top;
  const chunk = [...boxes[side].children].find((each) => each.getBoundingClientRect().bottom > top);
  const row = [...(chunk?.children ?? [])].find((each) => each.dataset.n && each.getBoundingClientRect().top >= top);
  return row ? Number(row.dataset.n) - 1 : 0;
}

function step(by) {
  choose(Math.min(stages.length - 1, Math.max(0, shown.right + by)));
  link();
}

const help = document.getElementById("help");
const graphKeys = new Set(["g"]); // the keys that this page handles while the graph is open
const KEYS = {
  j: ["next line", () => move(1)],
  k: ["previous line", () => move(-1)],
  h: ["left pane", () => boxes.left.focus()],
  l: ["right pane", () => boxes.right.focus()],
  "]": ["next stage", () => step(1)],
  "[": ["previous stage", () => step(-1)],
  "/": ["search", () => { field.focus(); field.select(); }],
  n: ["next hit, also Enter in the search field", () => jump(1)],
  N: ["previous hit, also Shift+Enter in the search field", () => jump(-1)],
  g: ["the graph, at the node of the selected line, or back", () => toggleGraph()],
  d: ["differences on or off", () => set("diff", !settings.diff)],
  w: ["wrap long lines or not", () => set("wrap", !settings.wrap)],
  f: ["lines in full or in short", () => set("names", !settings.names)],
  Escape: ["remove the highlighting", () => { unselect(); link(); }],
  "?": ["this help", showHelp],
};
function showHelp() {
  help.querySelector("table").innerHTML = Object.entries(KEYS).map(([key, [text]]) =>
    `<tr><td><kbd>${key}</kbd></td><td>${text}</td></tr>`).join("");
  help.showModal();
}
document.getElementById("keys").addEventListener("click", showHelp);

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || event.target.closest("input, select, textarea")) return;
  if (graphNode !== null && !graphKeys.has(event.key)) { frame.focus(); return; } // the graph has keys of its own
  if (Object.hasOwn(KEYS, event.key)) { KEYS[event.key][1](); event.preventDefault(); return; }
  const arrow = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  if (!arrow || event.target.closest(".lines, .divider")) return;
  step(arrow);
  event.preventDefault();
});

applySettings();
activate("right");
restore();
