"use strict";
// Differences between two texts, line by line and word by word.

// Runs that differ by more than MAX_EDITS lines are shown as removed and added as a whole.
const MAX_EDITS = 3000;

// Pair the lines of two texts: [line of a, line of b], -1 where a side has none.  Indentation is ignored.
function aligned(a, b) {
  return pairedBy(a.map((text) => text.trim()), b.map((text) => text.trim()), (onlyA, onlyB) =>
    // Among lines that differ, those that define the same value stand beside each other.
    pairedBy(onlyA.map((line) => definedIn(a[line])), onlyB.map((line) => definedIn(b[line])), beside)
      .map(([x, y]) => [onlyA[x] ?? -1, onlyB[y] ?? -1]));
}

// The name that a line defines, or the whole line.
function definedIn(text) {
  return /^\s*(?:def\s+|const\s+)?([\w"][^\s:=(]*)\s*[:=(]/.exec(text)?.[1] ?? text;
}

function beside(onlyA, onlyB) {
  return Array.from({ length: Math.max(onlyA.length, onlyB.length) }, (_, i) => [onlyA[i] ?? -1, onlyB[i] ?? -1]);
}

// Pair equal keys in order.  between: pairs the indices of a run of a and a run of b that have no equal keys.
function pairedBy(a, b, between) {
  let start = 0, endA = a.length, endB = b.length;
  while (start < endA && start < endB && a[start] === b[start]) start++;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) { endA--; endB--; }
  const pairs = [];
  for (let i = 0; i < start; i++) pairs.push([i, i]);
  let onlyA = [], onlyB = [];
  const flush = () => { pairs.push(...between(onlyA, onlyB)); onlyA = []; onlyB = []; };
  for (const [x, y] of edits(a.slice(start, endA), b.slice(start, endB))) {
    if (x >= 0 && y >= 0) { flush(); pairs.push([start + x, start + y]); }
    else if (x >= 0) onlyA.push(start + x);
    else onlyB.push(start + y);
  }
  flush();
  for (let i = 0; i < a.length - endA; i++) pairs.push([endA + i, endB + i]);
  return pairs;
}

// Myers, "An O(ND) Difference Algorithm and Its Variations".
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

// The ranges [start, end] of `text` that `other` does not have, or none if the lines have little in common.
function changedWords(text, other) {
  const split = (line) => line.trim().match(/\w+|\s+|[^\w\s]/g) ?? [];
  const words = split(text), pairs = edits(words, split(other));
  const isWord = (word) => /\w/.test(word), kept = new Set(pairs.filter(([x, y]) => x >= 0 && y >= 0).map(([x]) => x));
  const all = words.filter(isWord).length, common = words.filter((word, x) => isWord(word) && kept.has(x)).length;
  if (common * 4 < all) return [];
  const ranges = [];
  let at = text.length - text.trimStart().length;
  words.forEach((word, x) => {
    const last = ranges.at(-1);
    if (!kept.has(x)) {
      if (last?.[1] === at) last[1] += word.length;
      else ranges.push([at, at + word.length]);
    }
    at += word.length;
  });
  return ranges;
}
