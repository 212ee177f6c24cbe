"use strict";
// A graph of boxes inside each other.  relvm/explore/draw/box_layout.py lays out the inside of each box with the boxes
// in it closed.  If a box opens, the layers below it move down, and its neighbors in the layer move apart.
const data = JSON.parse(document.getElementById("data").textContent);
const { line, pad } = data.measures; // pixels
const ROOT = -1; // the number of the box around everything, as in box_layout.py
const svg = document.getElementById("graph"), world = document.getElementById("world");
const items = []; // all items by key, each before those inside it
const parent = new Map([[ROOT, null]]);
const isOpen = new Set([ROOT]);
const bookkeeping = new Set(data.hidden); // the items that are hidden unless `isFull`
let isFull = data.views.length === 1;
let arrows = [], incoming = new Map(), outgoing = new Map(); // key -> arrows
let layouts = {}; // the layout of each box
const view = { x: 0, y: 0, scale: 1 }; // the position of the graph's origin on the screen, and the zoom
let selected = null; // the key of the selected item
const hitKeys = new Set(); // the items that match the search

(function register(list, box, depth) {
  for (const item of list) {
    items[item.key] = item;
    parent.set(item.key, box);
    if (item.inside && depth < data.depth) isOpen.add(item.key);
    register(item.inside ?? [], item.key, depth + 1);
  }
})(data.items, ROOT, 0);
{
  // A page of several functions shows the first one, and a page with one box shows its inside.
  const boxes = data.items.filter((item) => item.inside);
  if (boxes.length && (boxes[0].kind === "function" || data.items.length === 1)) isOpen.add(boxes[0].key);
}

// Use the graph with or without bookkeeping.
function chooseView() {
  const chosen = data.views[isFull ? data.views.length - 1 : 0];
  layouts = chosen.boxes;
  arrows = chosen.arrows.map(([source, target, marked], number) => ({ source, target, marked, number }));
  incoming = new Map();
  outgoing = new Map();
  for (const arrow of arrows) {
    if (!outgoing.has(arrow.source)) outgoing.set(arrow.source, []);
    if (!incoming.has(arrow.target)) incoming.set(arrow.target, []);
    outgoing.get(arrow.source).push(arrow);
    incoming.get(arrow.target).push(arrow);
  }
}
chooseView();

const isShown = (key) => isFull || !bookkeeping.has(key);
const inside = (box) => (box === ROOT ? data.items : items[box].inside).filter(({ key }) => isShown(key));

// From the outermost box to the item itself.
function pathOf(key) {
  const path = [];
  for (let at = key; at !== null; at = parent.get(at)) path.unshift(at);
  return path;
}

// The item that stands for another one: the outermost closed box around it, or the item itself.
const seenAs = (key) => pathOf(key).find((each) => !isOpen.has(each)) ?? key;

// ---- time ----

// Seconds of a run that an item takes, or undefined if they are not measured.  A box takes the time of its contents.
const seconds = new Map();
// The seconds that determine the color of an item: those of a kernel, and for a box those of the slowest kernel in it.
const heats = new Map();
// The seconds of the slowest kernel, at which the scale of colors ends.
const [, hottest] = (function measure(list) {
  let total, most = 0;
  for (const item of list) {
    const row = data.profile?.rows[item.kernel];
    const [inside, slowest] = measure(item.inside ?? []);
    const own = row ? row.seconds / row.count : inside;
    if (own === undefined) continue;
    seconds.set(item.key, own);
    heats.set(item.key, row ? own : slowest);
    total = (total ?? 0) + own;
    most = Math.max(most, heats.get(item.key));
  }
  return [total, most];
})(data.items);

// ---- positions ----

let places = new Map(); // key of a visible item -> { x, y, width, height }: its upper left corner and size
let contents = new Map(); // key of an open box -> { x, y, at, rows }: see `arranged`

// The positions inside an open box: `at`, the center of each place; `rows`, the extents of the layers; `sizes`.
function arranged(box) {
  const at = new Map(), rows = [], sizes = new Map();
  let down = 0, left = Infinity, right = -Infinity, bottom = 0;
  for (const [top, height, row] of layouts[box].rows) {
    const grown = row.map(([id, , width]) => {
      if (!isOpen.has(Number(id))) return 0;
      const size = sizeOf(Number(id));
      sizes.set(id, size);
      return size.width - width;
    });
    const total = grown.reduce((sum, each) => sum + each, 0);
    let before = 0, tallest = height;
    row.forEach(([id, x, width], i) => {
      const center = x + before + (grown[i] - total) / 2;
      before += grown[i];
      at.set(id, { x: center, row: rows.length });
      left = Math.min(left, center - (width + grown[i]) / 2);
      right = Math.max(right, center + (width + grown[i]) / 2);
      if (sizes.has(id)) tallest = Math.max(tallest, (height - items[id].size[1]) / 2 + sizes.get(id).height);
    });
    rows.push({ top: top + down, height: tallest, closed: height });
    down += tallest - height;
    bottom = top + down + height;
  }
  for (const place of at.values()) place.x -= left;
  return { at, rows, sizes, width: at.size ? right - left : 0, height: bottom };
}

const titleHeight = (box) => (box === ROOT ? 0 : line + pad); // of the bar at the top of an open box

function sizeOf(box) {
  const content = arranged(box);
  contents.set(box, content);
  const title = box === ROOT ? 0 : items[box].size[0];
  return { width: Math.max(title, content.width + 2 * pad), height: titleHeight(box) + content.height + 2 * pad };
}

function layOut() {
  places = new Map();
  contents = new Map();
  const place = (box, { x, y, width }) => {
    const content = contents.get(box);
    content.x = x + (width - content.width) / 2;
    content.y = y + pad + titleHeight(box);
    for (const item of inside(box)) {
      const { x: center, row } = content.at.get(String(item.key)), { top, closed } = content.rows[row];
      const size = content.sizes.get(String(item.key)) ?? { width: item.size[0], height: item.size[1] };
      const corner = { x: content.x + center - size.width / 2, y: content.y + top + (closed - item.size[1]) / 2 };
      places.set(item.key, { ...corner, ...size });
      if (isOpen.has(item.key)) place(item.key, places.get(item.key));
    }
  };
  const size = sizeOf(ROOT);
  places.set(ROOT, { x: 0, y: 0, ...size });
  place(ROOT, places.get(ROOT));
}

// ---- edges ----

const MARGIN = 20; // how far a curve may go beyond the points that it connects
const ASIDE = 10, TURN = 12; // how far an edge that turns around an open box is from its side, and from its top or bottom
let pieces = []; // the lines to draw: { path, box, arrows, ends, marked }

function route() {
  const known = new Map();
  for (const arrow of arrows) {
    const source = seenAs(arrow.source), target = seenAs(arrow.target);
    if (source === target) {
      if (arrow.source === arrow.target && source === arrow.source) addLine(known, arrow, loopAt(places.get(source)), true, loop);
      continue;
    }
    const from = pathOf(source), to = pathOf(target);
    let common = 0;
    while (from[common] === to[common] && common < from.length && common < to.length) common++;
    if (common === from.length || common === to.length) continue;
    // Upwards from the source to the common box, through the ports of the boxes on the way.
    const isBack = isAbove(to[common], from[common]);
    let at = isBack && common === from.length - 1 ? beside(topOf(source)) : bottomOf(source);
    for (let i = from.length - 1; i > common; i--) {
      const box = from[i - 1], port = portOf(box, `o${arrow.source}`), edge = places.get(box);
      const end = { x: port.x, y: edge.y + edge.height };
      add(known, arrow, [at, ...way(box, from[i], `o${arrow.source}`, [at, null]), port, end], false);
      at = end;
    }
    if (isBack && common < from.length - 1) { // around the open box, and up
      const { x, y, width } = places.get(from[common]), side = x + width + ASIDE;
      add(known, arrow, [at, { x: side, y: at.y, turn: TURN }, { x: side, y }], false);
      at = { x: side, y };
    }
    // Across the common box, and down to the target.
    for (let i = common; i < to.length; i++) {
      const ends = i === to.length - 1, box = to[i - 1], item = to[i];
      const port = ends ? null : portOf(item, `i${arrow.source}`);
      const isAcross = i === common;
      const meeting = ends && isAcross && isBack ? beside(bottomOf(item)) : ends ? topOf(item) : null;
      const end = meeting ?? { x: port.x, y: places.get(item).y };
      const between = way(box, isAcross ? from[common] : `i${arrow.source}`, item, [isAcross ? at : null, end]);
      if (isAcross && isBack && !ends) { // around the open box, and down
        const { x, y, width, height } = places.get(item), side = x + width + ASIDE;
        between.push({ x: side, y: y + height }, { x: side, y });
        end.turn = -TURN;
      }
      add(known, arrow, [at, ...between, end], true);
      if (ends) break;
      add(known, arrow, [{ x: port.x, y: end.y + titleHeight(item) }, port], false); // no line crosses the title
      at = port;
    }
  }
  pieces = [...known.values()];
}

const bottomOf = (key) => { const { x, y, width, height } = places.get(key); return { x: x + width / 2, y: y + height }; };
const topOf = (key) => { const { x, y, width } = places.get(key); return { x: x + width / 2, y }; };

// Whether an item is in a layer above another one in the same box, so that an edge to it points up.
function isAbove(key, other) {
  const { at } = contents.get(parent.get(key));
  return at.get(String(key)).row < at.get(String(other)).row;
}

const beside = ({ x, y }) => ({ x: x + 12, y }); // apart from the edge in the other direction

function portOf(box, id) {
  const content = contents.get(box), { x, row } = content.at.get(id);
  return { x: content.x + x, y: content.y + content.rows[row].top };
}

// Where an edge leaves the layer of its source, crosses the layers on its way, and enters the layer of its target.
// ends: the points at which it leaves the source and reaches the target, or null for a port.
function way(box, source, target, ends) {
  const content = contents.get(box), [first, last] = [source, target].map((id) => content.at.get(String(id)).row);
  const down = first < last, points = [];
  const layer = (row) => [content.y + content.rows[row].top, content.y + content.rows[row].top + content.rows[row].height];
  if (down && ends[0]) points.push({ x: ends[0].x, y: layer(first)[1] });
  for (const id of layouts[box].routes[`${source} ${target}`] ?? []) {
    const { x, row } = content.at.get(id), crossing = layer(row).map((y) => ({ x: content.x + x, y }));
    const [enter, leave] = down ? crossing : crossing.reverse();
    points.push(enter, { ...leave, isCut: true }); // edges of the same source share what is before
  }
  if (down && ends[1]) points.push({ x: ends[1].x, y: layer(last)[0] });
  return points;
}

function loopAt({ x, y, width, height }) {
  return [{ x: x + width, y: y + height * 0.75 }, { x: x + width, y: y + height * 0.25 }];
}

const loop = ([a, b]) => `M${a.x},${a.y}C${a.x + MARGIN},${a.y} ${b.x + MARGIN},${b.y} ${b.x},${b.y}`;

// Add the lines through points, one for each part between two cuts.  Lines that several arrows share are added once.
function add(known, arrow, points, ends) {
  let first = 0;
  points.forEach((point, i) => {
    if (!point.isCut && i < points.length - 1) return;
    addLine(known, arrow, points.slice(first, i + 1), ends && i === points.length - 1);
    first = i;
  });
}

function addLine(known, arrow, points, ends, shape = curve) {
  const path = shape(points);
  const piece = known.get(path);
  if (piece) { piece.arrows.push(arrow.number); piece.ends ||= ends; piece.marked ||= arrow.marked; return; }
  const xs = points.map(({ x }) => x), ys = points.map(({ y }) => y);
  const box = [Math.min(...xs) - MARGIN, Math.min(...ys) - MARGIN, Math.max(...xs) + MARGIN, Math.max(...ys) + MARGIN];
  known.set(path, { path, box, arrows: [arrow.number], ends, marked: arrow.marked });
}

// Lines that leave and reach every point vertically.
function curve(points) {
  const near = (number) => number.toFixed(1);
  let path = `M${near(points[0].x)},${near(points[0].y)}`;
  for (let i = 1; i < points.length; i++) {
    const a = points[i - 1], b = points[i];
    if (Math.abs(a.x - b.x) < 0.5 && Math.abs(a.y - b.y) < 0.5) continue;
    if (b.turn) { path += `C${near(a.x)},${near(a.y + b.turn)} ${near(b.x)},${near(b.y + b.turn)} ${near(b.x)},${near(b.y)}`; continue; }
    if (Math.abs(a.x - b.x) < 0.5) { path += `V${near(b.y)}`; continue; }
    const reach = Math.max(Math.abs(b.y - a.y) / 2, 14) * (b.y < a.y ? -1 : 1);
    path += `C${near(a.x)},${near(a.y + reach)} ${near(b.x)},${near(b.y - reach)} ${near(b.x)},${near(b.y)}`;
  }
  return path;
}

// ---- drawing ----

const HEADS = ["plain", "marked", "lit"].map((name) =>
  `<marker id="head-${name}" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto"
    markerUnits="userSpaceOnUse"><path class="head ${name}" d="M0,1 L8,4 L0,7 z"/></marker>`).join("");
const escaped = (text) => String(text).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
const FAR = 0.35; // below this zoom, text of its own size is too small to read
const LEAST = 3; // pixels on the screen; what is smaller is not drawn
let painted = null; // the part of the graph that is drawn: [left, top, right, bottom], and whether it is far

function shownPart(margin) {
  const { clientWidth: width, clientHeight: height } = svg;
  const [dx, dy] = [width * margin, height * margin];
  return [(-view.x - dx) / view.scale, (-view.y - dy) / view.scale,
    (width - view.x + dx) / view.scale, (height - view.y + dy) / view.scale];
}

const meets = (a, b) => a[0] <= b[2] && b[0] <= a[2] && a[1] <= b[3] && b[1] <= a[3];

function paint() {
  const part = shownPart(0.5), far = view.scale < FAR, least = LEAST / view.scale;
  painted = { part, far, scale: view.scale };
  const open = [], front = [], titles = [];
  for (const [key, { x, y, width, height }] of places) {
    if (key === ROOT || Math.max(width, height) < least || !meets([x, y, x + width, y + height], part)) continue;
    const item = items[key], opened = isOpen.has(key);
    const group = `<g class="${classesOf(item, opened)}" data-key="${key}"${heatOf(item)}`;
    const role = item.inside ? ` role="button" aria-expanded="${opened}"` : ' role="button"';
    const rect = `${item.kind === "repeat" && !opened ? cardsOf(places.get(key)) : ""}<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="4"/>`;
    const text = far ? farTextOf(item, places.get(key)) : textOf(item, places.get(key), opened);
    (opened ? open : front).push(`${group} tabindex="0"${role} aria-label="${escaped(item.lines.join(", "))}">${rect}${opened ? "" : text}</g>`);
    if (opened) titles.push(`${group}>${far ? "" : barOf(places.get(key))}${text}</g>`);
  }
  const isSeen = ({ box }) => meets(box, part) && Math.max(box[2] - box[0], box[3] - box[1]) - 2 * MARGIN >= least;
  const edges = pieces.filter(isSeen).map((piece) => {
    const name = ["arrow", piece.ends && "ends", piece.marked && "marked"].filter(Boolean).join(" ");
    const reach = far ? "" : `<path class="reach" data-arrows="${piece.arrows.join(" ")}" d="${piece.path}"/>`;
    return `<path class="${name}" data-arrows="${piece.arrows.join(" ")}" d="${piece.path}"/>${reach}`;
  });
  const focused = document.activeElement?.dataset?.key;
  world.innerHTML = `<defs>${HEADS}</defs>${open.join("")}<g id="edges">${edges.join("")}</g>${front.join("")}${titles.join("")}`;
  world.classList.toggle("far", far);
  if (focused) elementOf(focused)?.focus({ preventScroll: true });
  showLegend();
  mark();
}

// Mark the selected item and its edges.  The elements stay the same, so that a second click meets the same element.
function mark() {
  for (const element of world.querySelectorAll(".item.selected, .arrow.lit")) element.classList.remove("selected", "lit");
  if (selected === null) return;
  for (const element of world.querySelectorAll(`.item[data-key="${selected}"]`)) element.classList.add("selected");
  const lit = new Set(touching(selected).map(({ number }) => String(number))), edges = document.getElementById("edges");
  for (const edge of edges.querySelectorAll(".arrow")) {
    if (!edge.dataset.arrows.split(" ").some((number) => lit.has(number))) continue;
    edge.classList.add("lit");
    edges.append(edge); // above the others
  }
}

const elementOf = (key) => world.querySelector(`[data-key="${key}"][tabindex]`);

function classesOf(item, opened) {
  const names = ["item", item.kind, item.inside ? (opened ? "box open" : "box") : "node"];
  if (hottest && isColored(item.key)) names.push("hot");
  if (hitKeys.has(item.key) || (item.inside && !opened && isHitInside(item))) names.push("hit");
  return names.join(" ");
}

const isHitInside = (item) => hitKeys.size > 0 && item.inside.some((each) => hitKeys.has(each.key) || (each.inside && isHitInside(each)));

// Kernels, and closed boxes, show their time.
const isColored = (key) => seconds.has(key) && (!isOpen.has(key) || Boolean(data.profile.rows[items[key].kernel]));

function heatOf(item) {
  if (!hottest || !isColored(item.key)) return "";
  return ` style="--share: ${(heats.get(item.key) / hottest).toFixed(3)}"`;
}

// The bar behind the title of an open box.
const barOf = ({ x, y, width }) =>
  `<path class="bar" d="M${x + 0.75},${y + line + pad}v${4 - line - pad}q0,-3.25 3.25,-3.25h${width - 8}q3.25,0 3.25,3.25v${line + pad - 4}z"/>`;

// Further cards behind the box of all copies of a block.
const cardsOf = ({ x, y, width, height }) => [7, 3.5].map((by) =>
  `<path class="card" d="M${x + width - 4},${y + by}h${by}q4,0 4,4v${height - 8}q0,4 -4,4h${8 - width}q-4,0 -4,-4v${-by}"/>`).join("");

function textOf(item, { x, y, width }, opened) {
  const top = opened ? y + pad / 2 : y + pad, lines = opened ? item.lines.slice(0, 1) : item.lines;
  const sign = item.inside
    ? `<text class="sign" x="${x + 3}" y="${top + line * 0.78}">${opened ? "\u25be" : "\u25b8"}</text>` : "";
  const start = opened ? x + 2 * pad : x + width / 2 + (item.inside ? 4 : 0);
  return sign + lines.map((text, i) => {
    const isName = item.name && item.label && i > 0 && i === lines.length - 1;
    const name = [i === 0 ? "label" : isName ? "name" : "", opened ? "title" : ""].filter(Boolean).join(" ");
    return `<text class="${name}" x="${start}" y="${top + line * (i + 0.78)}" text-anchor="${opened ? "start" : "middle"}">${escaped(text)}</text>`;
  }).join("");
}

// The label in a size that can be read, if the item has room for it.
function farTextOf(item, { x, y, width, height }) {
  const size = 11 / view.scale, label = item.label || item.name;
  if (0.62 * size * label.length > width || 1.5 * size > height) return "";
  return `<text class="label title" x="${x + size / 3}" y="${y + 1.1 * size}" style="font-size: ${size}px; stroke-width: ${size / 3}px">${escaped(label)}</text>`;
}

function formatSeconds(time) {
  if (time >= 1) return `${time.toPrecision(3)} s`;
  return time >= 1e-3 ? `${(time * 1e3).toPrecision(3)} ms` : `${(time * 1e6).toPrecision(3)} \u00b5s`;
}

function showLegend() {
  const legend = document.getElementById("legend");
  legend.hidden = !data.profile;
  if (data.profile) legend.innerHTML = `time of a kernel: 0 <i></i> ${formatSeconds(hottest)}`;
}

// The arrows that begin or end at an item or inside it, but do not stay inside it.
function touching(key) {
  const keys = new Set(), found = new Set();
  (function collect(each) { keys.add(each); for (const inner of items[each].inside ?? []) collect(inner.key); })(key);
  for (const each of keys) {
    for (const arrow of outgoing.get(each) ?? []) if (!keys.has(arrow.target) || arrow.source === arrow.target) found.add(arrow);
    for (const arrow of incoming.get(each) ?? []) if (!keys.has(arrow.source)) found.add(arrow);
  }
  return [...found];
}

// ---- zoom and pan ----

let waiting = false;

function moved() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    applyView();
  });
}

function applyView() {
  world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
  document.getElementById("zoom").textContent = `${Math.round(view.scale * 100)}%`;
  const [left, top, right, bottom] = shownPart(0), part = painted?.part;
  const covered = part && left >= part[0] && top >= part[1] && right <= part[2] && bottom <= part[3];
  const much = part && (right - left) * 4 < part[2] - part[0]; // zoomed in: most of what is drawn is outside
  const isScaled = painted?.far && Math.abs(Math.log(view.scale / painted.scale)) > 0.3; // the labels have another size
  if (!covered || much || isScaled || painted.far !== view.scale < FAR) paint();
}

// Zoom by a factor around a point of the screen.
function zoom(factor, x = svg.clientWidth / 2, y = svg.clientHeight / 2) {
  const scale = Math.min(3, Math.max(0.005, view.scale * factor));
  const by = scale / view.scale;
  view.x = x - (x - view.x) * by;
  view.y = y - (y - view.y) * by;
  view.scale = scale;
  moved();
}

function pan(dx, dy) {
  view.x += dx;
  view.y += dy;
  moved();
}

const LARGEST = 1.5; // the zoom at which a small graph is shown
let fitted = null; // the position that `fit` chose last

// Show the whole graph.  least: the smallest zoom; a graph that does not fit then is shown from its beginning.
function fit(least = 0.005) {
  const { width, height } = places.get(ROOT), { clientWidth, clientHeight } = svg;
  view.scale = Math.min(LARGEST, Math.max(least, Math.min((clientWidth - 20) / width, (clientHeight - 20) / height)));
  view.x = (clientWidth - width * view.scale) / 2;
  view.y = height * view.scale < clientHeight ? (clientHeight - height * view.scale) / 2 : 10;
  if (width * view.scale > clientWidth) view.x = clientWidth / 2 - view.scale * middleOf(clientHeight / view.scale);
  fitted = { ...view };
  moved();
}

// The middle of the part of the screen's width that shows most items of the graph's beginning.
function middleOf(height) {
  const reach = svg.clientWidth / view.scale - 20;
  const first = data.items.filter(({ key }) => places.get(key)?.y < height).map(({ key }) => places.get(key)).sort((a, b) => a.x - b.x);
  let best = 0, middle = places.get(ROOT).width / 2;
  for (const { x: left } of first) {
    const seen = first.filter(({ x, width }) => x >= left && x + width <= left + reach);
    if (seen.length <= best) continue;
    best = seen.length;
    middle = (left + Math.max(...seen.map(({ x, width }) => x + width))) / 2;
  }
  return middle;
}

// Open boxes that only group items, the outermost first, as long as the whole graph can be read on the screen.
function openWhatFits() {
  const fits = () => {
    layOut();
    const { width, height } = places.get(ROOT);
    return width <= svg.clientWidth - 20 && height <= svg.clientHeight - 20;
  };
  if (!fits()) return;
  for (const { key, kind } of items) {
    if (!["scope", "repeat"].includes(kind) || isOpen.has(key) || !isOpen.has(parent.get(key)) || !isShown(key)) continue;
    isOpen.add(key);
    if (!fits()) isOpen.delete(key);
  }
  layOut();
}

// Move an item to the middle of the screen, unless it is well inside.
function reveal(key) {
  const { x, y, width, height } = places.get(seenAs(key));
  if (view.scale < FAR) view.scale = 1;
  const left = view.x + x * view.scale, top = view.y + y * view.scale;
  const right = left + width * view.scale, bottom = top + Math.min(height * view.scale, 60);
  if (left < 10 || top < 10 || right > svg.clientWidth - 10 || bottom > svg.clientHeight - 10) {
    view.x = svg.clientWidth / 2 - (x + width / 2) * view.scale;
    view.y = svg.clientHeight / 2 - (y + Math.min(height, svg.clientHeight / view.scale / 2) / 2) * view.scale;
  }
  moved();
}

svg.addEventListener("wheel", (event) => {
  event.preventDefault();
  const box = svg.getBoundingClientRect();
  const step = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
  zoom(Math.exp(-Math.max(-240, Math.min(240, step)) / 500), event.clientX - box.left, event.clientY - box.top);
}, { passive: false });

let drag = null; // { x, y, moved } of a pressed button
svg.addEventListener("pointerdown", (event) => {
  if (event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: false };
});
svg.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const dx = event.clientX - drag.x, dy = event.clientY - drag.y;
  if (!drag.moved && Math.hypot(dx, dy) < 4) return;
  if (!drag.moved) { drag.moved = true; svg.setPointerCapture(event.pointerId); svg.classList.add("dragging"); }
  drag.x = event.clientX;
  drag.y = event.clientY;
  pan(dx, dy);
});
for (const name of ["pointerup", "pointercancel"])
  svg.addEventListener(name, () => { svg.classList.remove("dragging"); if (drag?.moved) setTimeout(() => { drag = null; }); else drag = null; });

// ---- opening and closing ----

function redraw() {
  layOut();
  route();
  painted = null;
  applyView();
}

// Show bookkeeping or hide it.
function setFull(full) {
  if (full === isFull || data.views.length === 1) return;
  isFull = full;
  document.getElementById("full").checked = full;
  if (selected !== null && !isShown(selected)) select(null);
  chooseView();
  keepPlace();
  showPanel();
}

// The top of the box stays where it is on the screen.
function toggle(key) {
  if (!items[key].inside) return;
  const before = topOf(key);
  if (!isOpen.delete(key)) isOpen.add(key);
  layOut();
  const after = topOf(key);
  view.x += (before.x - after.x) * view.scale;
  view.y += (before.y - after.y) * view.scale;
  route();
  painted = null;
  applyView();
}

function openAll() {
  for (const item of items) if (item.inside) isOpen.add(item.key);
  keepPlace();
}

function closeAll() {
  isOpen.clear();
  isOpen.add(ROOT);
  keepPlace();
}

// Draw after many boxes have changed: the selected item stays on the screen, or else the first item.
function keepPlace() {
  layOut();
  route();
  painted = null;
  if (selected === null) fit(1);
  else reveal(selected);
  applyView();
}

// Open the boxes around an item.
function uncover(key) {
  if (!isShown(key)) setFull(true);
  const closed = pathOf(key).slice(0, -1).filter((box) => !isOpen.has(box));
  if (!closed.length) return;
  for (const box of closed) isOpen.add(box);
  redraw();
}
