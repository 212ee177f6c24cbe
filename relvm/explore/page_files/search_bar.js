"use strict";
// The search field and its buttons.  A page defines what they do: `search` reads the field, and `jump` goes to a hit.

const field = document.getElementById("search");

// Show how many hits a search has, or which of them was jumped to.  wanted: the text that is searched, or "".
// current: the number of the hit from 0, or -1.
function showHit(wanted, count, current, unit) {
  const text = current < 0 ? `${count} ${unit}` : `${current + 1} of ${count}`;
  document.getElementById("position").textContent = wanted ? (count ? text : "no hits") : "";
}

field.addEventListener("input", search);
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter") jump(event.shiftKey ? -1 : 1);
  if (event.key === "Escape") field.blur();
});
document.getElementById("next").addEventListener("click", () => jump(1));
document.getElementById("previous").addEventListener("click", () => jump(-1));
