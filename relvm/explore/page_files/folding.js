"use strict";
// Long literals in the editor: each is shown as a short mark, which stands for it when the program is built, saved or
// copied.  A mark is in the line of its literal, so that all lines keep their numbers.

const MARK = /\u27e8#(\d+): [^\u27e9\n]*\u27e9/g;
const LITERAL = /(?<=\bconst\(\w+\[[^\]\n]{0,200}\], )(?:"[^"\\\n]{80,}"|\[[-+\w., [\]]{80,}\])(?=\))/g;
const FOLDED = new RegExp(`${LITERAL.source}|${MARK.source}`, "g"); // a text that looks like a mark is folded, too
const literals = []; // the literal of mark 1, of mark 2, and so on

const unfolded = (text) => text.replace(MARK, (mark, number) => literals[number - 1] ?? mark);

function folded(text) {
  return text.replace(FOLDED, (literal) => {
    const known = literals.indexOf(literal) + 1;
    return `\u27e8#${known || literals.push(literal)}: ${literal.length.toLocaleString("en")} characters\u27e9`;
  });
}

// The [start, end] ranges of the marks in a line.
const marksIn = (line) => [...line.matchAll(MARK)].map(({ index, 0: { length } }) => [index, index + length]);

const PROGRAM = new RegExp(`(?<folded>${MARK.source})|${KINDS.ir.source}`, "gu"); // the kinds of tokens, for `colored`

// Columns count characters of the program, and strings of JavaScript count UTF-16 units.
const unitsOf = (text, characters) => [...text].slice(0, characters).join("").length;

// The position in a line with marks of a column of the program, from 0.
function positionOf(line, column) {
  let at = 0;
  for (const [start, end] of marksIn(line)) {
    const before = [...line.slice(at, start)].length, length = [...unfolded(line.slice(start, end))].length;
    if (column < before) break;
    if (column < before + length) return start;
    column -= before + length;
    at = end;
  }
  return at + unitsOf(line.slice(at), column);
}
