"use strict";
// Settings and the sizes of the panes, which the browser keeps.

const STORE = "relvm.stages";
const hasEditor = document.getElementById("editor") !== null;
let textChanged = () => {}; // called when the setting "full text" has changed
const settings = { diff: true, wrap: false, names: false, theme: "light dark", editor: Math.round(innerWidth * 0.27), list: 250, share: 0.57, ...stored() };

// Pages from files or in frames may not be allowed to store anything.
function stored() {
  try { return JSON.parse(localStorage.getItem(STORE)) ?? {}; } catch { return {}; }
}

function set(name, value) {
  settings[name] = value;
  try { localStorage.setItem(STORE, JSON.stringify(settings)); } catch { /* the setting lasts as long as the page */ }
  applySettings();
  if (name === "diff") show();
  if (name === "names") { repaint(); textChanged(); }
}

function applySettings() {
  document.documentElement.style.colorScheme = settings.theme;
  document.body.classList.toggle("wrapped", settings.wrap);
  document.body.classList.toggle("full-names", settings.names);
  const { editor, list, share } = settings;
  document.querySelector("main").style.gridTemplateColumns = (hasEditor ? `${editor}px 5px ` : "") +
    (document.body.classList.contains("has-graph") ? "minmax(0, 1fr)" : `${list}px 5px minmax(0, ${share}fr) 5px minmax(0, ${1 - share}fr)`);
  for (const input of document.querySelectorAll("[data-setting]")) {
    if (input.type === "checkbox") input.checked = settings[input.dataset.setting];
    else input.value = settings[input.dataset.setting];
  }
}

for (const input of document.querySelectorAll("[data-setting]"))
  input.addEventListener("change", () => set(input.dataset.setting, input.type === "checkbox" ? input.checked : input.value));

// move: called with the horizontal position of the pointer, or with the current one and a step of an arrow key.
function dividerMoves(id, position, move) {
  const divider = document.getElementById(id);
  if (!divider) return; // a page without panes
  divider.addEventListener("pointerdown", (event) => { divider.setPointerCapture(event.pointerId); event.preventDefault(); });
  divider.addEventListener("pointermove", (event) => { if (divider.hasPointerCapture(event.pointerId)) move(event.clientX); });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
    if (step) { move(position() + step); event.preventDefault(); }
  });
}

const clamped = (value, least, most) => Math.min(most, Math.max(least, value));
const listStart = () => (hasEditor ? settings.editor + 5 : 0);
dividerMoves("list-divider", () => listStart() + settings.list,
  (x) => set("list", clamped(Math.round(x - listStart()), 60, innerWidth / 2)));
{
  const start = () => listStart() + settings.list + 5, width = () => innerWidth - start() - 5;
  dividerMoves("pane-divider", () => start() + settings.share * width(),
    (x) => set("share", clamped((x - start()) / width(), 0.1, 0.9)));
}
