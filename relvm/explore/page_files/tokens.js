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
  assembly: kinds(
    String.raw`(?<comment>^ *# c:.*)`, STRING, String.raw`(?<call>^[.\w$]+(?=:))`, keywords(String.raw`(?<=^ +)[a-z][\w.]*`),
    String.raw`(?<type>%\w+)`, String.raw`(?<number>\$?-?(?:0x[\da-f]+|(?<![\w.])\d+)\b)`, NAME),
};

// Characters; how many at the start and at the end of a long name are shown.  The ends of names from ONNX models differ.
const LONG_NAME = 28, HEAD = 7, TAIL = 20;

// The HTML of one line.  marks: [start, end, class] ranges, drawn over the tokens.  cuts: the parts of `shortParts`.
function colored(text, table, marks, cuts = []) {
  const tokens = cuts.map(([start, end, short]) => [start, end, "cut", short]);
  for (const match of text.matchAll(table)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    const end = match.index + match[0].length;
    if (!cuts.some((cut) => cut[0] < end && match.index < cut[1])) tokens.push([match.index, end, kind]);
  }
  tokens.sort((a, b) => a[0] - b[0]);
  let html = "", at = 0;
  for (const [start, end, kind, short] of tokens) {
    const inner = marked(text, start, end, marks);
    html += marked(text, at, start, marks);
    if (kind === "cut") html += cut(inner, short, text.slice(start, end));
    else if (end - start > LONG_NAME && (kind === "name" || kind === "call")) html += shortened(text, start, end, kind, marks);
    else html += kind === "name" ? inner : `<span class="${kind}">${inner}</span>`;
    at = end;
  }
  return html + marked(text, at, text.length, marks);
}

// A long name: its middle is hidden by the style sheet, so that a copy of the line has the whole name.
function shortened(text, start, end, kind, marks) {
  const parts = [[start, start + HEAD], [start + HEAD, end - TAIL], [end - TAIL, end]];
  const [head, middle, tail] = parts.map(([from, to]) => marked(text, from, to, marks));
  return `<span class="long ${kind}" title="${escaped(text.slice(start, end))}">${head}${cut(middle, "\u2026")}${tail}</span>`;
}

// A part that the style sheet replaces by a short text, so that a copy of the line has the whole part.
const cut = (html, short, title) =>
  `<span class="cut" data-short="${escaped(short)}"${title ? ` title="${escaped(title.slice(0, MAX_TITLE))}"` : ""}>${html}</span>`;
const MAX_TITLE = 600; // characters of a constant that are shown if the mouse points at it

// ---- long types, sizes and constants of modules ----

const MAX_NAME = 16, MAX_EXPRESSION = 8; // characters of sizes that are shown, as in relvm/explore/views/size_names.py
const MAX_CONSTANT = 24, MAX_STRING = 32; // characters of constants and strings that are shown

const sizeNames = new Map(); // the text of a long size -> its short name
function nameSizes(sizes) {
  sizeNames.clear();
  for (const [name, size] of Object.entries(sizes))
    sizeNames.set(size.replace(/\bd\d+\b/g, (short) => (Object.hasOwn(sizes, short) && short !== name ? sizes[short] : short)), name);
}

function sizeName(size) {
  if (!sizeNames.has(size)) {
    const taken = new Set(sizeNames.values());
    let number = sizeNames.size;
    while (taken.has(`d${number}`)) number++;
    sizeNames.set(size, `d${number}`);
  }
  return sizeNames.get(size);
}

// The type that a binding states: [start, end] with the colon, or null.
function typeRange(text) {
  const found = /^(\s*[^\s:=(]+)(: .*?) = /.exec(text);
  return found && [found[1].length, found[1].length + found[2].length];
}

// The parts of a line of a module that are shown in short: [start, end, the short text].
function shortParts(text) {
  const type = typeRange(text), parts = type ? [[...type, ""]] : [];
  const add = (start, end, short) => { if (!parts.some((part) => part[0] < end && start < part[1])) parts.push([start, end, short]); };
  for (const { index, 0: { length } } of text.matchAll(/"(?:[^"\\]|\\.)*"/g))
    if (length > MAX_STRING) add(index + MAX_STRING / 2, index + length - MAX_STRING / 4, "\u2026");
  for (const { index, 0: { length } } of text.matchAll(/\bconst\(\w+\[[^\]]*\], /g)) {
    const start = index + length, end = closing(text, start, ")");
    if (end - start > MAX_CONSTANT) add(start, end, "\u2026");
  }
  for (const { index, 0: { length } } of text.matchAll(/\b(?:[iuf]\d+|bf16|f8\w*|bool|str|tensor|shape)\[/g))
    for (const [start, end] of listed(text, index + length)) {
      const size = text.slice(start, end);
      if (size.length > (/^\w+$/.test(size) ? MAX_NAME : MAX_EXPRESSION)) add(start, end, sizeName(size));
    }
  for (const { index, 0: word } of text.matchAll(/[\p{L}_][\p{L}\p{N}_]*/gu))
    if (word.length > MAX_NAME && sizeNames.has(word)) add(index, index + word.length, sizeName(word));
  return parts;
}

// The short form of the type that a binding states, or "".
function shortType(text) {
  const range = typeRange(text);
  if (!range) return "";
  const type = text.slice(range[0] + 2, range[1]);
  let short = "", at = 0;
  for (const [start, end, name] of shortParts(type).sort((a, b) => a[0] - b[0])) {
    short += type.slice(at, start) + name;
    at = end;
  }
  return short + type.slice(at);
}

// The position of the sign that closes the brackets around `start`.
function closing(text, start, sign) {
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (depth === 0 && text[at] === sign) return at;
    if ("([{".includes(text[at])) depth++;
    if (")]}".includes(text[at])) depth--;
  }
  return text.length;
}

// The ranges of the items of a list in square brackets that begins at `start`.
function listed(text, start) {
  const end = closing(text, start, "]"), ranges = [];
  let depth = 0, first = start;
  for (let at = start; at <= end; at++) {
    if (at === end || (depth === 0 && text[at] === ",")) {
      ranges.push([first + /^\s*/.exec(text.slice(first, at))[0].length, at]);
      first = at + 1;
    } else if ("([".includes(text[at])) depth++;
    else if (")]".includes(text[at])) depth--;
  }
  return ranges;
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
