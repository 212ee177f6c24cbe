"use strict";
// Syntax colors: one table of token kinds for each kind of text.  The names of the groups are CSS classes.

const STRING = String.raw`(?<string>"(?:[^"\\]|\\.)*"?)`;
const NUMBER = String.raw`(?<number>(?<![\w.])(?:0x[\da-f.]+(?:p[+-]?\d+)?|\d+(?:\.\d+)?(?:e[+-]?\d+)?)[fuUL]*(?!\w))`;
const TYPE = String.raw`(?<type>\b(?:[iuf](?:4|8|16|32|64)|u?int\d+_t|[fb]f?16|f8\w*|bool|str|list|tensor|float|double|int|char|void|long|struct|const(?!\()|static|restrict|rvm_\w+(?=[ *]+\w))\b)`;
const CALL = String.raw`(?<call>@?[\p{L}_][\p{L}\p{N}_]*(?=\())`;
const NAME = String.raw`(?<name>[\p{L}_][\p{L}\p{N}_]*)`;
const keywords = (words) => String.raw`(?<keyword>\b(?:${words})\b)`;
const kinds = (...table) => new RegExp(table.join("|"), "gu");

const KINDS = {
  ir: kinds(
    String.raw`(?<comment>#.*)`, STRING, NUMBER,
    keywords("module|def|fn|with|if|then|else|return|true|false|null|inf|nan|const|shape|dtype|match_cast|packed|packed_pure|builtin|kernel|run|kill|prim|dim|fused|for|in|let|and|or|not"),
    TYPE, CALL, NAME),
  routine: kinds(String.raw`(?<comment>#.*)`, STRING, NUMBER, keywords("if|else|return|null|pass|for|while"), CALL, NAME),
  bytecode: kinds(
    String.raw`(?<comment>;.*)`, STRING, NUMBER,
    keywords(String.raw`(?<=^ *\d+: )\w+|bytecode|registers|kernel|program`), String.raw`(?<call>[A-Za-z_][\w.]*(?=\())`, TYPE, NAME),
  kernels: kinds(
    STRING, NUMBER, keywords(String.raw`(?<=^ *\d+: )\w+|kernel|input|output|array`), TYPE, CALL, NAME),
  c: kinds(
    String.raw`(?<comment>\/\*.*?(?:\*\/|$)|\/\/.*)`, STRING, NUMBER,
    keywords("for|while|if|else|return|switch|case|break|goto|do|sizeof|default"), TYPE, CALL, NAME),
};

const LONG_NAME = 28, KEPT = 11; // characters; how many at each end of a long name are shown

// The HTML of one line.  marks: [start, end, class] ranges, drawn over the tokens.
function colored(text, table, marks) {
  const tokens = [];
  for (const match of text.matchAll(table)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    tokens.push([match.index, match.index + match[0].length, kind]);
  }
  let html = "", at = 0;
  for (const [start, end, kind] of tokens) {
    const inner = marked(text, start, end, marks);
    html += marked(text, at, start, marks);
    if (end - start > LONG_NAME && (kind === "name" || kind === "call")) html += shortened(text, start, end, kind, marks);
    else html += kind === "name" ? inner : `<span class="${kind}">${inner}</span>`;
    at = end;
  }
  return html + marked(text, at, text.length, marks);
}

// A long name: its middle is hidden by the style sheet, so that a copy of the line has the whole name.
function shortened(text, start, end, kind, marks) {
  const parts = [[start, start + KEPT], [start + KEPT, end - KEPT], [end - KEPT, end]];
  const [head, middle, tail] = parts.map(([from, to]) => marked(text, from, to, marks));
  return `<span class="long ${kind}" title="${escaped(text.slice(start, end))}">${head}<span class="cut">${middle}</span>${tail}</span>`;
}

// The HTML of a part of a line, with the marks that lie in it.
function marked(text, start, end, marks) {
  if (!marks.length) return escaped(text.slice(start, end));
  const within = marks.filter(([from, to]) => from < end && to > start);
  const edges = [...new Set([start, end, ...within.flat().filter((edge) => edge > start && edge < end)])].sort((a, b) => a - b);
  let html = "";
  for (let i = 0; i + 1 < edges.length; i++) {
    const names = within.filter(([from, to]) => from <= edges[i] && to >= edges[i + 1]).map(([, , name]) => name);
    const part = escaped(text.slice(edges[i], edges[i + 1]));
    html += names.length ? `<span class="${names.join(" ")}">${part}</span>` : part;
  }
  return html;
}

function escaped(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;").replace(/"/g, "&quot;");
}
