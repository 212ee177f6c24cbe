"use strict";
// The selection, the panel with its details, and the search.

const panel = document.getElementById("panel");

const titleOf = (item) => [item.name, item.label].filter(Boolean).join(" = ");
function go(key) {
  const { label, name, lines } = items[key], short = label && name ? ` <small>${escaped(lines[lines.length - 1])}</small>` : "";
  return `<button class="go" data-go="${key}" title="${escaped(name)}"><code>${escaped(label || name)}</code>${short}</button>`;
}

const section = (title, html) => (html ? `<h3>${title}</h3>${html}` : "");
const table = (rows) => (rows.length ? `<table>${rows.map(([name, html]) => `<tr><td>${escaped(name)}</td><td>${html}</td></tr>`).join("")}</table>` : "");
const code = (text) => `<code>${escaped(text)}</code>`;

function select(key, { show = true } = {}) {
  selected = key;
  if (key !== null && show) { uncover(key); reveal(key); }
  showPanel();
  mark();
  link();
}

function showPanel() {
  panel.innerHTML = selected === null ? overview() : detailsOf(items[selected]);
  panel.scrollTop = 0;
  const kinds = new Set(items.filter(({ key }) => isShown(key)).map(({ kind }) => kind));
  document.getElementById("colors").innerHTML = Object.entries(data.legend).filter(([kind]) => kinds.has(kind))
    .map(([kind, meaning]) => `<span class="item ${kind}"><i></i>${escaped(meaning)}</span>`).join("");
}

function overview() {
  const shown = items.filter(({ key }) => isShown(key)), boxes = shown.filter((item) => item.inside).length;
  const rows = [["nodes", shown.length - boxes], ["boxes", boxes], ["edges", arrows.length]];
  if (!isFull) rows.push(["hidden", `${items.length - shown.length} (bookkeeping)`]);
  const hot = [...seconds].filter(([key]) => items[key].kernel).sort((a, b) => b[1] - a[1]).slice(0, 15);
  return `<h2>${escaped(document.title)}</h2>${table(rows)}` +
    section("Longest times", table(hot.map(([key, time]) => [formatSeconds(time), go(key)]))) +
    section("Sizes", table(Object.entries(data.sizes).map(([name, size]) => [name, code(size)]))) +
    "<p class=\"where\">Click a node for its details. Double-click a box, or click its triangle, to open or close it.</p>";
}

function detailsOf(item) {
  const boxes = pathOf(item.key).slice(1, -1);
  const where = boxes.map(go).join(" / ");
  const inputs = item.inputs?.length ? item.inputs.map(({ name, ...value }) => [name, operand(value)])
    : sourcesOf(item).map((key) => ["", go(key)]);
  const outputs = targetsOf(item).map((key) => ["", go(key)]);
  const origins = (item.origins ?? []).map((number) => `<div>${code(data.origins[number])}</div>`).join("");
  const actions = [];
  if (item.inside) actions.push(`<button data-do="toggle">${isOpen.has(item.key) ? "close" : "open"} box</button>`);
  if (data.stage && item.name) actions.push(`<button data-do="stage">show in stage ${escaped(data.stage)}</button>`);
  return `<h2>${escaped(item.label || item.name)}</h2>` + (where && `<div class="where">in ${where}</div>`) +
    table([...(item.name && item.label ? [["name", code(item.name)]] : []), ...(item.type ? [["type", code(item.type)]] : []),
      ...(item.function !== undefined && item.function !== null ? [["calls", go(item.function)]] : []),
      ...kernelOf(item)]) +
    (actions.length ? `<div class="actions">${actions.join("")}</div>` : "") +
    section("Profile", profileOf(item)) +
    section("Attributes", table((item.attributes ?? []).map(([name, text]) => [name, code(text)]))) +
    section("Inputs", table(inputs)) + section("Outputs", table(outputs)) + section("Source", origins);
}

function kernelOf(item) {
  if (item.kernel) return [["kernel", code(item.kernel)]];
  const box = items[parent.get(item.key)];
  return box?.kernel ? [["fused into", `${go(box.key)} ${code(box.kernel)}`]] : [];
}

function profileOf(item) {
  if (!seconds.has(item.key)) return "";
  const time = seconds.get(item.key), row = data.profile.rows[item.kernel];
  const share = `${(100 * time / data.profile.seconds).toFixed(1)} % of ${formatSeconds(data.profile.seconds)}`;
  const rows = [["time", formatSeconds(time)], ["share", share]];
  if (!row) return table(rows);
  const rate = (amount, unit) => `${(amount / row.seconds / 1e9).toPrecision(3)} ${unit}`;
  if (row.count > 1) rows[0][1] += `, the mean of ${row.count} calls of the kernel`;
  rows.push(["calls", row.count], ["kernel total", formatSeconds(row.seconds)]);
  if (row.bytes) rows.push(["bytes", row.bytes.toLocaleString("en")], ["memory", rate(row.bytes, "GB/s")]);
  if (row.operations) rows.push(["arithmetic", rate(row.operations, "GFLOP/s")]);
  return table(rows.map(([name, text]) => [name, escaped(text)]));
}

function operand(value) {
  if ("item" in value) return `${go(value.item)} ${code(items[value.item].type ?? "")}`;
  if ("text" in value) return code(value.text);
  const { type, bytes, ...statistics } = data.constants[value.constant];
  if ("value" in statistics) return code(`${type} ${statistics.value}`);
  const shown = Object.entries(statistics).filter(([name, count]) => count || !["nan", "inf"].includes(name));
  const names = { nan: "NaN" };
  return `constant ${code(type)}<div class="statistics">${shown.map(([name, text]) => `${names[name] ?? name} ${escaped(text)}`).join(", ")}</div>`;
}

function sourcesOf(item) {
  return [...new Set(touching(item.key).filter((arrow) => isWithin(arrow.target, item.key)).map(({ source }) => source))];
}

function targetsOf(item) {
  const own = touching(item.key).filter((arrow) => isWithin(arrow.source, item.key)).map(({ target }) => target);
  const box = items[parent.get(item.key)];
  const isLast = box?.kind === "group" && box.inside[box.inside.length - 1] === item;
  return [...new Set([...own, ...(isLast ? targetsOf(box) : [])])];
}

const isWithin = (key, box) => pathOf(key).includes(box);

panel.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.go) select(Number(button.dataset.go));
  if (button?.dataset.do === "toggle") { toggle(selected); showPanel(); }
  if (button?.dataset.do === "stage") parentPage({ name: items[selected].name, origins: originsOf(items[selected]) });
});

const keyAt = (event) => { const group = event.target.closest?.(".item"); return group ? Number(group.dataset.key) : null; };

svg.addEventListener("click", (event) => {
  if (drag?.moved) return;
  const key = keyAt(event);
  const isSign = Boolean(event.target.closest(".sign"));
  if (!isSign) select(key, { show: false });
  if (key !== null && (isSign || event.detail === 2)) { toggle(key); showPanel(); } // detail: the number of clicks
});

// ---- what the mouse points at ----

const tip = document.getElementById("tip");
svg.addEventListener("pointermove", (event) => {
  const edge = event.target.closest?.(".reach"), key = keyAt(event);
  const text = edge ? edgeText(edge.dataset.arrows.split(" ").map(Number)) : key === null || drag?.moved ? "" : tipOf(items[key]);
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 4)}px`;
});
svg.addEventListener("pointerleave", () => { tip.hidden = true; });

function edgeText(numbers) {
  const values = [...new Set(numbers.map((number) => arrows[number].source))];
  const texts = values.slice(0, 5).map((key) => `${items[key].name || items[key].label}${items[key].type ? `: ${items[key].type}` : ""}`);
  return [...texts, ...(values.length > 5 ? [`and ${values.length - 5} more`] : [])].join("\n");
}

function tipOf(item) {
  const time = seconds.has(item.key) ? `\n${formatSeconds(seconds.get(item.key))}` : "";
  return isOpen.has(item.key) ? "" : `${titleOf(item)}${item.type ? `\n${item.type}` : ""}${time}`;
}

// ---- search ----

let hits = [], current = -1; // the keys of the items that match, and the position of the one that was jumped to

function search() {
  const wanted = field.value.toLowerCase();
  hits = wanted ? items.filter((item) => searchText(item).includes(wanted)).map(({ key }) => key) : [];
  hitKeys.clear();
  for (const key of hits) hitKeys.add(key);
  current = -1;
  showPosition();
  painted = null;
  moved();
}

const searchText = (item) => [item.label, item.name, item.type, item.kernel].filter(Boolean).join("\n").toLowerCase();

const showPosition = () => showHit(field.value, hits.length, current, hits.length === 1 ? "hit" : "hits");

function jump(step) {
  if (!hits.length) return;
  current = current < 0 ? (step > 0 ? 0 : hits.length - 1) : (current + step + hits.length) % hits.length;
  select(hits[current]);
  showPosition();
}
