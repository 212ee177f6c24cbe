"use strict";
// Buttons, keys, and links: #node=NAME, or messages if the page of all stages contains this one.

const originsOf = (item) => (item.origins ?? []).map((number) => data.origins[number]);
const parentPage = (message) => parent_.postMessage({ relvm: "line", ...message }, "*");
const parent_ = window.parent;
const isFramed = data.stage !== "";
document.body.classList.toggle("framed", isFramed);

// ---- links ----

const linkOf = (key) => (key === null ? null : items[key].link);
const address = () => (selected === null ? "" : `#${new URLSearchParams({ node: items[selected].link })}`);

function link() {
  if (isFramed) { parent_.postMessage({ relvm: "node", node: linkOf(selected), origins: selected === null ? [] : originsOf(items[selected]) }, "*"); return; }
  if (address() === location.hash) return;
  const url = new URL(location.href);
  url.hash = address();
  if (location.protocol !== "about:") location.replace(url);
}

function restore(node) {
  const item = items.find((each) => each.link === node);
  if (item) select(item.key);
  else if (node) panel.innerHTML = `<h2>Not found</h2><p>This graph has no node ${escaped(node)}.</p>`;
}

const nodeOfAddress = () => new URLSearchParams(location.hash.slice(1)).get("node");
addEventListener("hashchange", () => { if (address() !== location.hash) restore(nodeOfAddress()); });

// The page of all stages asks for a node, by its link or by the name and the source locations of a line.
addEventListener("message", ({ data: message, source }) => {
  if (source !== parent_ || !isFramed) return;
  if (message.relvm === "theme") { settings.theme = message.theme; applySettings(); }
  if (message.relvm === "node") restore(message.node);
  if (message.relvm === "line") {
    const found = nodeOfLine(message);
    if (found) select(found.key);
    else panel.innerHTML = "<h2>Not in this graph</h2><p>No node comes from the source of this line.</p>";
  }
  if (message.relvm === "leave") parent_.postMessage({ relvm: "left", state: state() }, "*");
  if (message.relvm === "enter") enter(message);
});

// ---- from one graph to the next ----

// What the page shows: the boxes with whether they are open, the selected node, and the position unless it is the first.
function state() {
  return {
    boxes: items.filter((item) => item.inside).map((item) => [item.link, isOpen.has(item.key)]),
    node: linkOf(selected), corner: selected === null ? null : cornerOf(selected), isFull,
    view: Object.keys(view).every((name) => view[name] === fitted[name]) ? null : { ...view },
  };
}

const cornerOf = (key) => { const { x, y } = places.get(seenAs(key)); return [view.x + x * view.scale, view.y + y * view.scale]; };

// Show the same as the page before this one.  The selected node stays where it is on the screen.
function enter(before) {
  const wasOpen = new Map(before.boxes);
  for (const { key, link: name, inside: contents } of items) {
    if (!contents || !wasOpen.has(name)) continue;
    if (wasOpen.get(name)) isOpen.add(key);
    else isOpen.delete(key);
  }
  if (before.isFull) setFull(true);
  redraw();
  const item = items.find((each) => each.link === before.node);
  fit(1);
  if (before.view) {
    Object.assign(view, before.view);
    if (item && isShown(item.key)) {
      const [x, y] = cornerOf(item.key);
      view.x += before.corner[0] - x;
      view.y += before.corner[1] - y;
    }
    const part = shownPart(0);
    if (![...places].some(([key, { x, y, width, height }]) => key !== ROOT && meets([x, y, x + width, y + height], part))) fit(1);
  }
  select(item && isShown(item.key) ? item.key : null, { show: false });
}

// The node with the name, or else the one that shares the largest part of its source locations with the line.  name: ""
// if the line binds no variable.
function nodeOfLine({ name, origins }) {
  const wanted = new Set(origins), named = items.filter((item) => name && item.name === name);
  const shared = (item) => {
    const own = originsOf(item), common = own.filter((origin) => wanted.has(origin)).length;
    return common / (own.length + wanted.size - common || 1);
  };
  const candidates = named.length ? named : items.filter((item) => shared(item) > 0);
  return candidates.reduce((best, item) => (best === undefined || shared(item) > shared(best) ? item : best), undefined);
}

// ---- keys ----

// Select the next item along an edge.  ends: `incoming` or `outgoing`.
function follow(ends, end) {
  if (selected === null) { select(data.items[0]?.key ?? null); return; }
  const arrow = (ends.get(selected) ?? touching(selected).filter((each) => !isWithin(each[end], selected)))[0];
  if (arrow) select(arrow[end]);
}

const STEP = 80; // pixels
const help = document.getElementById("help");
const KEYS = {
  "+": ["zoom in, also with the wheel", () => zoom(1.25)],
  "-": ["zoom out", () => zoom(0.8)],
  f: ["show the whole graph", () => fit()],
  ArrowLeft: ["move left, also by dragging", () => pan(STEP, 0)],
  ArrowRight: ["move right", () => pan(-STEP, 0)],
  ArrowUp: ["move up", () => pan(0, STEP)],
  ArrowDown: ["move down", () => pan(0, -STEP)],
  j: ["select the first user of the selected value", () => follow(outgoing, "target")],
  k: ["select the first input of the selected node", () => follow(incoming, "source")],
  Enter: ["open or close the selected box, also a double click", () => { if (selected !== null) { toggle(selected); showPanel(); } }],
  o: ["open all boxes", () => openAll()],
  c: ["close all boxes", () => closeAll()],
  ...(data.views.length > 1 && { b: ["show or hide sizes, checks and constants", () => setFull(!isFull)] }),
  "/": ["search", () => { field.focus(); field.select(); }],
  n: ["next hit, also Enter in the search field", () => jump(1)],
  N: ["previous hit, also Shift+Enter in the search field", () => jump(-1)],
  Escape: ["select nothing", () => select(null)],
  ...(isFramed && { g: ["back to the stages", () => parent_.postMessage({ relvm: "close" }, "*")] }),
  "?": ["this help", () => help.showModal()],
};
help.querySelector("table").innerHTML = Object.entries(KEYS).map(([key, [text]]) =>
  `<tr><td><kbd>${key.replace("Arrow", "")}</kbd></td><td>${text}</td></tr>`).join("");

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open || event.target.closest("input, select, button")) return;
  const key = event.key === "=" ? "+" : event.key;
  const focused = event.target.closest(".item");
  if (focused && (key === "Enter" || key === " ")) {
    select(Number(focused.dataset.key), { show: false });
    toggle(selected);
    showPanel();
    event.preventDefault();
  } else if (Object.hasOwn(KEYS, key)) {
    KEYS[key][1]();
    event.preventDefault();
  }
});

for (const [id, run] of [["in", () => zoom(1.25)], ["out", () => zoom(0.8)], ["fit", () => fit()], ["open", openAll],
  ["close", closeAll], ["keys", () => help.showModal()]])
  document.getElementById(id).addEventListener("click", () => run());
document.getElementById("full").addEventListener("change", (event) => setFull(event.target.checked));
new ResizeObserver(() => moved()).observe(svg);

applySettings();
document.getElementById("switch").hidden = data.views.length === 1;
layOut();
openWhatFits();
route();
fit(1);
applyView();
showPanel();
if (isFramed) parent_.postMessage({ relvm: "ready" }, "*");
else restore(nodeOfAddress());
