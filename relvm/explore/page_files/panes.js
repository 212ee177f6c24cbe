"use strict";
// The sizes of the list and the panes, and the settings that change how lines look.

function settingsChanged(name) {
  document.body.classList.toggle("wrapped", settings.wrap);
  document.body.classList.toggle("full-names", settings.names);
  const { list, share } = settings;
  document.querySelector("main").style.gridTemplateColumns =
    `${list}px 5px minmax(0, ${share}fr) 5px minmax(0, ${1 - share}fr)`;
  if (name === "diff") show();
}

// move: called with the horizontal position of the pointer, or with the current one and a step of an arrow key.
function dividerMoves(id, position, move) {
  const divider = document.getElementById(id);
  divider.addEventListener("pointerdown", (event) => { divider.setPointerCapture(event.pointerId); event.preventDefault(); });
  divider.addEventListener("pointermove", (event) => { if (divider.hasPointerCapture(event.pointerId)) move(event.clientX); });
  divider.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -20, ArrowRight: 20 }[event.key];
    if (step) { move(position() + step); event.preventDefault(); }
  });
}

const clamped = (value, least, most) => Math.min(most, Math.max(least, value));
dividerMoves("list-divider", () => settings.list, (x) => set("list", clamped(Math.round(x), 60, innerWidth / 2)));
{
  const width = () => innerWidth - settings.list - 10;
  dividerMoves("pane-divider", () => settings.list + 5 + settings.share * width(),
    (x) => set("share", clamped((x - settings.list - 5) / width(), 0.1, 0.9)));
}
