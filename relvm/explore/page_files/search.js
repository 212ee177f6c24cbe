"use strict";
// Search in all stages.  The hits stay marked while the mouse moves; nothing but the field changes what is searched.

let wanted = ""; // in lower case
let hits = []; // [stage, line] of each line that matches, in order
let current = -1; // the hit that was jumped to

// The ranges of a line that match, for `colored`.
function hitsIn(text) {
  const found = [];
  if (!wanted) return found;
  const lower = text.toLowerCase();
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, at + wanted.length))
    found.push([at, at + wanted.length, "hit"]);
  return found;
}

function search() {
  find();
  const first = hits.find(([stage]) => stage === shown.right);
  if (first) reveal("right", first[1]);
}

// Find and count the hits, without a jump.
function find() {
  wanted = field.value.toLowerCase();
  hits = [];
  current = -1;
  stages.forEach((stage, number) => {
    const before = hits.length;
    if (wanted) stage.lines.forEach((text, line) => { if (text.toLowerCase().includes(wanted)) hits.push([number, line]); });
    buttons[number].querySelector(".hits").textContent = hits.length - before || "";
  });
  repaint();
  showPosition();
}

const showPosition = () => showHit(wanted, hits.length, current, "lines");

// Jump to the next or previous hit, in the stages from the shown one on.  step: 1 or -1.
function jump(step) {
  if (!hits.length) return;
  const here = selected?.side === "right" ? selected.line : step > 0 ? -1 : Infinity;
  const isAfter = ([stage, line]) => stage > shown.right || (stage === shown.right && line > here);
  const isBefore = ([stage, line]) => stage < shown.right || (stage === shown.right && line < here);
  current = step > 0 ? hits.findIndex(isAfter) : hits.findLastIndex(isBefore);
  if (current < 0) current = step > 0 ? 0 : hits.length - 1; // past the end: start again
  const [stage, line] = hits[current];
  if (stage !== shown.right) choose(stage);
  select("right", line);
  showPosition();
  link({ replace: true });
}
