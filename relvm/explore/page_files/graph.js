"use strict";
// A graph of boxes inside each other: a click opens or closes one, and the rest moves to make room.
const data = JSON.parse(document.getElementById("data").textContent);
const { letter, line, pad, gap } = data.measures; // inches, as relvm/explore/draw/graph.py has them
const SCALE = 120; // pixels an inch
const svg = document.getElementById("graph"), scroller = document.getElementById("scroller");
const items = new Map(); // key -> item, of all
const isOpen = new Set(); // the keys of open boxes

(function register(list, depth) {
  for (const item of list) {
    items.set(item.key, item);
    if (item.inside.length && depth < data.depth) isOpen.add(item.key);
    register(item.inside, depth + 1);
  }
})(data.items, 0);

// ---- what is seen, and where ----

function visible() {
  const seenAs = new Map();
  const visit = (item, within) => {
    seenAs.set(item.key, within ?? item.key);
    const closed = within ?? (isOpen.has(item.key) ? null : item.key);
    const inside = item.inside.map((each) => visit(each, closed));
    return { ...item, inside: closed === null ? inside : [] };
  };
  const list = data.items.map((item) => visit(item, null)), arrows = [], known = new Set();
  for (const [source, target, marked] of data.arrows) {
    const ends = [seenAs.get(source), seenAs.get(target)];
    const name = `${ends} ${marked}`;
    const isInside = ends[0] === ends[1] && !(source === target && ends[0] === source);
    if (known.has(name) || isInside) continue;
    known.add(name);
    arrows.push({ source: ends[0], target: ends[1], marked, bends: null });
  }
  return { items: list, arrows };
}

function placed(graph) {
  const middle = new Map(), size = new Map(), moving = new Map();
  const place = (list, box) => {
    for (const item of list) size.set(item.key, sizeOf(item));
    const owner = new Map();
    const own = (item, top) => { owner.set(item.key, top); for (const each of item.inside) own(each, top); };
    for (const item of list) own(item, item.key);
    const edges = [], edgeOf = new Map(), lying = [];
    for (const arrow of graph.arrows) {
      const ends = [owner.get(arrow.source), owner.get(arrow.target)];
      if (ends.includes(undefined) || ends[0] === ends[1]) continue;
      const name = `${ends}`;
      if (!edgeOf.has(name)) { edgeOf.set(name, edges.length); edges.push(ends); }
      lying.push([arrow, edgeOf.get(name)]);
    }
    const layout = arrange(new Map(list.map((item) => [item.key, size.get(item.key)])), edges, gap, data.measures);
    for (const [key, point] of layout.centres) middle.set(key, point);
    for (const [arrow, edge] of lying) arrow.bends = layout.bends[edge];
    moving.set(box, lying.map(([arrow]) => arrow));
    return [layout.width, layout.height];
  };
  const sizeOf = (item) => {
    const lines = item.text.split("\n");
    let width = letter * Math.max(...lines.map((each) => [...each].length)), height = line * lines.length;
    if (item.inside.length) {
      const inner = place(item.inside, item.key);
      width = Math.max(width, inner[0]);
      height += pad + inner[1];
    }
    return [width + 2 * pad, height + 2 * pad];
  };
  const shift = (list, [left, top], box) => {
    for (const arrow of moving.get(box)) arrow.bends = arrow.bends.map(([x, y]) => [x + left, y + top]);
    for (const item of list) {
      const [x, y] = middle.get(item.key), at = [x + left, y + top], [width, height] = size.get(item.key);
      middle.set(item.key, at);
      const above = line * item.text.split("\n").length + pad;
      if (item.inside.length) shift(item.inside, [at[0] - width / 2 + pad, at[1] - height / 2 + pad + above], item.key);
    }
  };
  const [width, height] = place(graph.items, null);
  shift(graph.items, [pad, pad], null);
  return { middle, size, width: width + 2 * pad, height: height + 2 * pad };
}

// ---- drawing ----

function element(name, attributes, parent) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  parent.append(made);
  return made;
}

function draw() {
  const graph = visible(), { middle, size, width, height } = placed(graph);
  svg.replaceChildren();
  svg.setAttribute("width", width * SCALE);
  svg.setAttribute("height", height * SCALE);
  const defs = element("defs", {}, svg);
  for (const name of ["plain", "marked", "lit"]) {
    const shape = { id: `head-${name}`, viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, markerHeight: 7 };
    element("path", { d: "M0,1 L8,4 L0,7 z", class: `head ${name}` },
      element("marker", { ...shape, orient: "auto", markerUnits: "userSpaceOnUse" }, defs));
  }
  const drawItem = (item) => {
    const [x, y] = middle.get(item.key), [wide, high] = size.get(item.key);
    const whole = items.get(item.key), isBox = whole.inside.length > 0, open = item.inside.length > 0;
    const kind = isBox ? (open ? "box open" : "box") : "node";
    const group = element("g", { class: `item ${kind}`, "data-key": item.key }, svg);
    const [left, top] = [(x - wide / 2) * SCALE, (y - high / 2) * SCALE];
    const fill = data.colours[item.kind];
    element("rect", { x: left, y: top, width: wide * SCALE, height: high * SCALE, rx: 3, fill }, group);
    const anchor = open ? { x: left + pad * SCALE, "text-anchor": "start" } : { x: x * SCALE, "text-anchor": "middle" };
    item.text.split("\n").forEach((text, i) => {
      const at = { ...anchor, y: top + (pad + line * (i + 0.75)) * SCALE };
      element("text", at, group).textContent = text;
    });
    if (isBox) {
      const sign = { x: left + 1, y: top + (pad + line * 0.75) * SCALE + 1, class: "sign" };
      element("text", sign, group).textContent = open ? "\u25be" : "\u25b8";
      for (const [name, value] of [["role", "button"], ["tabindex", 0], ["aria-expanded", open]])
        group.setAttribute(name, value);
      group.addEventListener("click", () => toggle(item.key));
      group.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        toggle(item.key);
        svg.querySelector(`[data-key="${item.key}"]`).focus();
      });
    }
    group.addEventListener("mouseenter", () => light(item.key, true));
    group.addEventListener("mouseleave", () => light(item.key, false));
    item.inside.forEach(drawItem);
  };
  graph.items.forEach(drawItem);
  for (const arrow of graph.arrows) {
    const points = wayOf(arrow, middle, size).map(([x, y]) => `${(x * SCALE).toFixed(1)},${(y * SCALE).toFixed(1)}`);
    const ends = { "data-source": arrow.source, "data-target": arrow.target };
    element("polyline", { points: points.join(" "), class: arrow.marked ? "arrow marked" : "arrow", ...ends }, svg);
  }
}

// From the side of one item to that of the other, through the bends.
function wayOf({ source, target, bends }, middle, size) {
  if (source === target) {
    const [x, y] = middle.get(source), [width, height] = size.get(source), right = x + width / 2, out = right + gap[0] / 2;
    return [[right, y + height / 4], [out, y + height / 4], [out, y - height / 4], [right, y - height / 4]];
  }
  const start = middle.get(source), end = middle.get(target), way = bends ?? [];
  const first = way[0] ?? end, last = way[way.length - 1] ?? start;
  return [sideOf(start, size.get(source), first), ...way, sideOf(end, size.get(target), last)];
}

// Where a line from the middle of a rectangle to a point outside it leaves it: at its upper or lower side.
function sideOf([x, y], [width, height], towards) {
  const side = y + (towards[1] > y ? height / 2 : -height / 2);
  const share = Math.min(1, Math.abs(side - y) / Math.max(Math.abs(towards[1] - y), 1e-9));
  const reach = width / 2 - pad;
  return [x + Math.max(-reach, Math.min(reach, (towards[0] - x) * share)), side];
}

function light(key, on) {
  for (const arrow of svg.querySelectorAll(`[data-source="${key}"], [data-target="${key}"]`)) {
    arrow.classList.toggle("lit", on);
    if (on) svg.append(arrow);
  }
}

// ---- opening and closing ----

// What is clicked stays where it is on the screen.
function toggle(key) {
  const corner = () => svg.querySelector(`[data-key="${key}"] rect`).getBoundingClientRect();
  const before = corner();
  if (!isOpen.delete(key)) isOpen.add(key);
  draw();
  const after = corner();
  scroller.scrollBy(after.left - before.left, after.top - before.top);
}

// Has the first item in the middle of the screen.
function drawFromTop() {
  draw();
  const first = svg.querySelector("rect")?.getBBox();
  if (first) scroller.scrollTo(first.x + first.width / 2 - scroller.clientWidth / 2, 0);
}

document.getElementById("open").addEventListener("click", () => {
  for (const item of items.values()) if (item.inside.length) isOpen.add(item.key);
  drawFromTop();
});
document.getElementById("close").addEventListener("click", () => {
  isOpen.clear();
  drawFromTop();
});
drawFromTop();
