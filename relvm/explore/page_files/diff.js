"use strict";
// Differences between two texts, line by line and word by word.

// Runs that differ by more than MAX_EDITS lines are shown as removed and added as a whole.
const MAX_EDITS = 3000;

// Compare two modules line by line.  Indentation is ignored, and so is the name of the last value in a fused group, which
// is the group's own name outside of it.  Lines that differ are paired by operator and source location, or else by name.
//   pairs: [line of a, line of b], -1 where a side has none
//   kinds: for each side, the kind of each line: "changed", "moved", "frame" (the first and last lines of a group) or ""
//   groups: for each side, the first line of the fused group that contains a line, or -1
function aligned(stageA, stageB) {
  const [a, b] = [stageA.lines, stageB.lines], [groupsA, groupsB] = [fusedGroups(a), fusedGroups(b)];
  const [keysA, keysB] = [groupsA.keys, groupsB.keys];
  const sourceIn = (stage, line) => {
    const operator = /^\s*[^\s:=(]+(?:: .*?)? = (\w+)\(/.exec(stage.lines[line])?.[1];
    return operator && stage.origins[line].length ? `${operator} ${stage.origins[line][0]}` : stage.lines[line];
  };
  // Pair lines by a key, and those that are left by the next one.  The result has positions in linesA and linesB.
  const paired = (linesA, linesB, [keys, ...others]) =>
    pairedBy(linesA.map(keys[0]), linesB.map(keys[1]), (restA, restB) => (others.length
      ? paired(restA.map((i) => linesA[i]), restB.map((i) => linesB[i]), others).map(([x, y]) => [restA[x] ?? -1, restB[y] ?? -1])
      : beside(restA, restB)));
  const pairs = paired([...a.keys()], [...b.keys()], [
    [(line) => keysA[line], (line) => keysB[line]],
    [(line) => sourceIn(stageA, line), (line) => sourceIn(stageB, line)],
    [(line) => definedIn(keysA[line]), (line) => definedIn(keysB[line])],
  ]);
  const kindsA = a.map(() => ""), kindsB = b.map(() => ""), gone = new Map(); // key -> the lines of a without an equal one
  for (const [x, y] of pairs) {
    if (x >= 0 && y >= 0 && (keysA[x] === keysB[y] || sourceIn(stageA, x) === sourceIn(stageB, y))) {
      if ((groupsA.of[x] < 0) !== (groupsB.of[y] < 0)) kindsA[x] = kindsB[y] = "moved";
      else if (keysA[x] !== keysB[y]) kindsA[x] = kindsB[y] = "changed";
      continue;
    }
    if (x >= 0) {
      kindsA[x] = y < 0 && groupsA.frames.has(x) ? "frame" : "changed";
      gone.set(keysA[x], [...(gone.get(keysA[x]) ?? []), x]);
    }
    if (y >= 0) kindsB[y] = x < 0 && groupsB.frames.has(y) ? "frame" : "changed";
  }
  // A line that is gone here and new there has moved.
  for (const [, y] of pairs) {
    const x = y >= 0 && kindsB[y] === "changed" && definedIn(keysB[y]) !== keysB[y] ? gone.get(keysB[y])?.shift() : undefined;
    if (x !== undefined && kindsA[x] === "changed") kindsA[x] = kindsB[y] = "moved";
  }
  return { pairs, kinds: [kindsA, kindsB], groups: [groupsA.of, groupsB.of] };
}

// The fused groups of a module.
function fusedGroups(lines) {
  const of = lines.map(() => -1), frames = new Set(), keys = lines.map((text) => text.trim());
  let group = null; // {start, indent, name, result}
  lines.forEach((text, line) => {
    const opened = group ? null : /^(\s*)([^\s:=(]+)(?:: .*)? = fused \{$/.exec(text);
    if (opened) { group = { start: line, indent: opened[1], name: opened[2], result: "" }; frames.add(line); }
    if (!group) return;
    of[line] = group.start;
    const result = /^\s*return (\S+)$/.exec(text);
    if (result) { group.result = result[1]; frames.add(line); }
    if (text !== `${group.indent}}`) return;
    frames.add(line);
    for (let i = group.start + 1; i < line; i++)
      if (!frames.has(i) && definedIn(keys[i]) === group.result) keys[i] = group.name + keys[i].slice(group.result.length);
    group = null;
  });
  return { of, frames, keys };
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
