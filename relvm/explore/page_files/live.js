"use strict";
// The editor: sends the program and the build options to the server, and shows the stages and the runs that come back.

const DELAY = 200; // milliseconds without a key, after which the program is built
const live = data.live;
const request = JSON.parse(live.request); // what the server is asked to build
const textarea = document.getElementById("text");
const programBox = document.getElementById("program-box");
const programLines = document.getElementById("program-lines");
const problemButton = document.getElementById("problem");
let isFirst = true; // whether no stages have been shown yet
let isOpened = true; // whether the next stages are shown as the address says, after the page or a link was opened
let problem = null; // of the last answer: {message, line, column, length}; the numbers only if the error has a place
let builtText = null; // the text that the stages come from
let builtNumber = -1; // of the change that the stages show
let passes = []; // of the last answer: {name, optional}

document.getElementById("program").textContent = data.title;
document.getElementById("note").textContent = live.isModel ? "read-only" : "";
document.getElementById("note").title = live.isModel ? "Change the options or the passes. The text of an ONNX model shows its large constants as \"...\". " +
  "For a program that can be edited: relvm show --stage given --full-constants MODEL > program.relvm" : "";
document.getElementById("dims").hidden = !live.isModel;
programBox.classList.toggle("read-only", live.isModel);
textarea.hidden = live.isModel;
textarea.value = shownText(request.text);

// ---- the text ----

// The text has its colors from lines behind it.  Only lines that differ from those of the last text are drawn again.
function drawText() {
  const texts = textarea.value.split("\n"), old = [...programLines.children];
  let start = 0, same = 0; // how many lines at the start, and then at the end, are the same
  while (start < old.length && start < texts.length && old[start].text === texts[start]) start++;
  while (same < Math.min(old.length, texts.length) - start && old.at(-1 - same).text === texts.at(-1 - same)) same++;
  const following = old[old.length - same] ?? null;
  for (const line of old.slice(start, old.length - same)) line.remove();
  for (const text of texts.slice(start, texts.length - same)) programLines.insertBefore(newLine(text), following);
  const lines = programLines.children;
  const renumbered = lines.length === old.length ? lines.length - same : lines.length;
  for (let at = start; at < renumbered; at++) lines[at].dataset.n = at + 1;
  const wrong = problem?.line ? lines[problem.line - 1] : null;
  for (const line of programLines.querySelectorAll(".wrong")) if (line !== wrong) color(line);
  if (wrong) color(wrong, errorRange(wrong.text));
}

function newLine(text) {
  const line = document.createElement("div");
  line.className = "line";
  line.text = text;
  line.append(document.createElement("code"));
  color(line);
  return line;
}

function color(line, error = null) {
  if (live.isModel) { colorModule(line, line.text, []); return; }
  line.classList.toggle("wrong", error !== null);
  line.firstChild.innerHTML = colored(line.text, PROGRAM, error ? [error] : []) || "&#8203;";
}

function errorRange(text) {
  const start = Math.min(positionOf(text, problem.column - 1), Math.max(text.length - 1, 0));
  return [start, Math.max(positionOf(text, problem.column - 1 + problem.length), start + 1), "error"];
}

// ---- long literals ----

function shownText(text) {
  return settings.names ? text : folded(text);
}

textChanged = () => {
  const position = textarea.value.slice(0, textarea.selectionStart).split("\n").length - 1; // the line of the caret
  if (live.isModel) programLines.replaceChildren();
  else textarea.value = shownText(request.text);
  const start = textarea.value.split("\n").slice(0, position).join("\n").length + (position ? 1 : 0);
  textarea.setSelectionRange(start, start);
  drawText();
};

for (const name of ["copy", "cut"]) textarea.addEventListener(name, (event) => {
  const marked = textarea.value.slice(textarea.selectionStart, textarea.selectionEnd), text = unfolded(marked);
  if (text === marked) return;
  event.clipboardData.setData("text/plain", text);
  event.preventDefault();
  if (name === "cut") document.execCommand("delete");
});

textarea.addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text/plain"), shorter = shownText(text);
  if (shorter === text) return;
  document.execCommand("insertText", false, shorter); // keeps undo
  event.preventDefault();
});

// ---- builds ----

let timer = 0;
let running = null; // the AbortController of the last build
let runningProgram = null; // the AbortController of the last run
let number = 0; // of the last change

function changed(delay) {
  running?.abort();
  runningProgram?.abort();
  runResult.classList.add("outdated");
  number++; // an answer to an earlier request is not shown
  clearTimeout(timer);
  timer = setTimeout(() => { timer = 0; build(); }, delay);
}

async function build() {
  running = new AbortController();
  const mine = number;
  const waits = setTimeout(() => setStatus("building ..."), 300);
  try {
    const response = await post("build", running.signal);
    const answer = response.status === 204 ? null : await response.json();
    if (mine !== number || !answer) return; // there is a newer request
    document.body.classList.toggle("stale", Boolean(answer.problem));
    if (answer.problem) fail(answer.problem);
    else succeed(answer, Number(response.headers.get("x-build-milliseconds")));
  } catch (error) {
    if (mine === number) setStatus(`No answer from relvm explore; is it still running? (${error.message})`);
  } finally {
    clearTimeout(waits);
  }
}

function post(path, signal) {
  const headers = { "Content-Type": "application/json" };
  return fetch(path, { method: "POST", headers, body: JSON.stringify(request), signal });
}

function setStatus(text) {
  document.getElementById("status").textContent = text;
}

function fail(found, status = "Error: the stages are those of the last program without one.") {
  problem = found;
  problemButton.textContent = found.line ? `${found.line}:${found.column}: ${found.message}` : found.message;
  problemButton.hidden = false;
  setStatus(isFirst ? "Error." : status);
  drawText();
}

function succeed(answer, milliseconds) {
  problem = null;
  problemButton.hidden = true;
  passes = answer.passes;
  Object.assign(data, { graphStage: answer.graphStage, kernels: answer.kernels, times: null });
  nameSizes(answer.sizes);
  if (live.isModel) textarea.value = answer.stages[0].lines.join("\n");
  builtText = request.text;
  builtNumber = number;
  drawText();
  replaceStages(answer);
  setStatus(`Built in ${milliseconds} ms.`);
  if (graphNode !== null) loadGraph();
}

// ---- the graph ----

let graphNumber = -1; // of the change that the graph shows

loadGraph = async () => {
  if (graphNumber === builtNumber || builtNumber !== number) return; // a build that succeeds asks for its graph
  const mine = graphNumber = number;
  const waits = setTimeout(() => setStatus("drawing the graph ..."), 300);
  try {
    const response = await post("graph", running.signal);
    const answer = response.status === 204 ? null : await response.json();
    if (mine !== number || !answer) return;
    if (answer.problem) fail(answer.problem, "There is no graph.");
    else { replaceGraph(answer.graph); setStatus("Built, with the graph."); }
  } catch (error) {
    if (mine !== number) return;
    graphNumber = -1;
    setStatus(`No answer from relvm explore; is it still running? (${error.message})`);
  } finally {
    clearTimeout(waits);
  }
};
graphButton.hidden = false;

// A node of the graph highlights the lines of the editor.
nodeChosen = (names) => {
  selected = null;
  pinned = names.length ? numbersOf(names) : null;
  mark();
  if (pinned && document.activeElement !== textarea) editorLines(pinned)[0]?.scrollIntoView({ block: "nearest" });
};

// ---- runs ----

const runResult = document.getElementById("run-result"), runButton = document.getElementById("run");

async function run() {
  runningProgram?.abort();
  const mine = runningProgram = new AbortController();
  if (timer) { clearTimeout(timer); timer = 0; build(); } // the stages are those of the program that runs
  const change = number;
  const isCurrent = () => mine === runningProgram && change === number;
  setStatus("running ...");
  runButton.disabled = true;
  try {
    const response = await post("run", mine.signal);
    const answer = response.status === 204 ? null : await response.json();
    if (!isCurrent() || !answer) return;
    if (answer.problem) fail(answer.problem, "The run failed.");
    else showRun(answer);
  } catch (error) {
    if (isCurrent()) setStatus(`No answer from relvm explore; is it still running? (${error.message})`);
  } finally {
    if (mine === runningProgram) runButton.disabled = false;
  }
}

const runTime = (ms) => (ms < 0.1 ? `${(1000 * ms).toFixed(1)} µs` : ms < 100 ? `${ms.toFixed(2)} ms` : stageTime(ms));

function showRun(answer) {
  problem = null;
  problemButton.hidden = true;
  drawText();
  const rows = (values) => values.map(({ name, type, text }) =>
    `<tr><td>${escaped(name)}</td><td>${escaped(type)}</td><td>${escaped(text)}</td></tr>`).join("");
  const runs = answer.runs === 1 ? "1 run" : `${answer.runs} runs`;
  runResult.innerHTML = `<b>${escaped(answer.function)}</b> best ${runTime(answer.best)}, median ${runTime(answer.median)} of ${runs}` +
    `<table><tr><th colspan="3">random inputs</th></tr>${rows(answer.inputs)}<tr><th colspan="3">outputs</th></tr>${rows(answer.outputs)}</table>`;
  runResult.hidden = false;
  runResult.classList.remove("outdated");
  data.times = answer.times;
  setStatus("Ran. The kernels show their shares of the time.");
  const scrolled = SIDES.map((side) => [boxes[side].scrollLeft, boxes[side].scrollTop]);
  show();
  SIDES.forEach((side, at) => { [boxes[side].scrollLeft, boxes[side].scrollTop] = scrolled[at]; });
}

runButton.addEventListener("click", run);

problemButton.addEventListener("click", () => {
  if (!problem?.line) return;
  const lines = textarea.value.split("\n"), line = lines[problem.line - 1];
  const before = lines.slice(0, problem.line - 1).join("\n").length + (problem.line > 1 ? 1 : 0);
  const [start, end] = errorRange(line);
  textarea.focus();
  textarea.setSelectionRange(before + start, before + Math.min(end, line.length));
  programLines.children[problem.line - 1].scrollIntoView({ block: "nearest" });
});

// Show new stages.  What is shown, selected and searched stays as far as the new stages have it.
function replaceStages(answer) {
  const names = Object.fromEntries(SIDES.map((side) => [side, stages[shown[side]].name]));
  const line = selected && { ...selected, text: stages[shown[selected.side]].lines[selected.line] };
  const scrolled = SIDES.map((side) => [boxes[side].scrollLeft, boxes[side].scrollTop]);
  stages = answer.stages;
  origins = answer.origins;
  index();
  list();
  listPasses();
  selected = pinned = null;
  isFirst = false;
  if (isOpened) {
    isOpened = false;
    restore();
    find();
    return;
  }
  for (const side of SIDES) {
    const found = stages.findIndex((stage) => stage.name === names[side]);
    shown[side] = found >= 0 ? found : Math.min(shown[side], stages.length - 1);
  }
  show();
  if (line) {
    const texts = stages[shown[line.side]].lines;
    const same = texts.flatMap((text, at) => (text === line.text ? [at] : []));
    const nearest = same.sort((a, b) => Math.abs(a - line.line) - Math.abs(b - line.line))[0];
    if (nearest !== undefined) {
      selected = { side: line.side, line: nearest };
      pinned = stages[shown[line.side]].origins[nearest];
      if (!pinned.length) pinned = null;
    }
  }
  mark();
  SIDES.forEach((side, at) => { [boxes[side].scrollLeft, boxes[side].scrollTop] = scrolled[at]; });
  find();
  link({ replace: true });
}

// ---- the passes ----

// Put a box before each stage that comes from a pass.  Passes that are left out have no stage, only a box.
function listPasses() {
  const byName = new Map(stages.map((stage, at) => [stage.name, buttons[at]]));
  const isPass = new Set(passes.map((pass) => pass.name));
  const before = stages.filter((stage) => stage.name === "given").map(plainRow);
  const after = stages.filter((stage) => stage.name !== "given" && !isPass.has(stage.name)).map(plainRow);
  document.getElementById("stages").replaceChildren(...before, ...passes.map(passRow), ...after);

  function plainRow(stage) {
    const gap = document.createElement("span");
    gap.className = "gap";
    return row(gap, byName.get(stage.name));
  }

  function passRow(pass) {
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = byName.has(pass.name);
    box.disabled = !pass.optional;
    box.setAttribute("aria-label", `Run ${pass.name}`);
    box.title = pass.optional ? "Run this pass" : "This pass is required";
    box.addEventListener("change", () => {
      request.without = request.without.filter((name) => name !== pass.name);
      if (!box.checked) request.without.push(pass.name);
      changed(0);
    });
    const omitted = document.createElement("span");
    omitted.className = "omitted";
    omitted.textContent = pass.name;
    return row(box, byName.get(pass.name) ?? omitted);
  }

  function row(...children) {
    const element = document.createElement("div");
    element.className = "row";
    element.append(...children);
    return element;
  }
}

// ---- between the text and the stages ----

// The number of the line of the text that an origin names, from 0, or -1.
function lineOfOrigin(name) {
  const found = name.startsWith(`${data.title}:`) ? /^(\d+):\d+$/.exec(name.slice(data.title.length + 1)) : null;
  return found ? Number(found[1]) - 1 : -1;
}

editorLines = (wanted) => {
  if (request.text !== builtText) return [];
  const lines = live.isModel ? linesOf(stages[0], wanted) : new Set(wanted.map((origin) => lineOfOrigin(origins[origin])));
  return [...lines].map((line) => programLines.children[line]).filter(Boolean);
};

// Highlight what became of a line of the program.
function followLine(line) {
  if (request.text !== builtText) return;
  const wanted = live.isModel ? stages[0].origins[line] ?? []
    : [...origins.keys()].filter((origin) => lineOfOrigin(origins[origin]) === line);
  selected = null;
  pinned = wanted.length ? wanted : null;
  mark();
  if (pinned && graphNode !== null) send({ relvm: "line", name: "", origins: namesOf(pinned) });
  if (pinned) for (const side of SIDES) {
    const related = linesOf(stages[shown[side]], pinned);
    if (related.size) reveal(side, Math.min(...related));
  }
}

// ---- events ----

textarea.addEventListener("input", () => {
  saveButton.textContent = "Save";
  request.text = unfolded(textarea.value);
  problem = null;
  drawText();
  light(pinned ?? []);
  changed(DELAY);
});
textarea.addEventListener("click", () => {
  if (textarea.selectionStart !== textarea.selectionEnd) return;
  followLine(textarea.value.slice(0, textarea.selectionStart).split("\n").length - 1);
});
programLines.addEventListener("click", (event) => { // the text of a model, which the text area does not cover
  const line = lineAt(event);
  if (line >= 0 && !String(getSelection())) followLine(line);
});
textarea.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { textarea.blur(); unselect(); }
  if (event.key !== "Enter" || event.ctrlKey || event.altKey || event.metaKey) return;
  const line = textarea.value.slice(0, textarea.selectionStart).split("\n").at(-1);
  document.execCommand("insertText", false, `\n${/^ */.exec(line)[0]}${/[{(]\s*$/.test(line) ? "  " : ""}`); // keeps undo
  event.preventDefault();
});

const optionInputs = [...document.querySelectorAll("[data-option]")];
const keyOf = (input) => (input.type === "checkbox" ? "checked" : "value");

function showOptions() {
  for (const input of optionInputs) input[keyOf(input)] = request[input.dataset.option];
}

showOptions();
for (const input of optionInputs) {
  const name = input.dataset.option;
  input.addEventListener(name === "dims" ? "input" : "change", () => {
    request[name] = input[keyOf(input)];
    changed(name === "dims" ? DELAY : 0);
  });
}
document.getElementById("options").addEventListener("submit", (event) => event.preventDefault());

const saveButton = document.getElementById("save");
saveButton.hidden = !live.output;
saveButton.title = `Write the program to ${live.output} (Ctrl+S)`;
async function save() {
  try {
    const answer = await (await post("save")).json();
    if (!answer.problem) saveButton.textContent = "Saved";
    setStatus(answer.problem ? answer.problem.message : `Saved to ${answer.saved}.`);
  } catch (error) {
    setStatus(`Not saved: no answer from relvm explore (${error.message})`);
  }
}
saveButton.addEventListener("click", save);
document.addEventListener("keydown", (event) => {
  if (!live.output || event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
  save();
  event.preventDefault();
});

// ---- links that contain the program ----

const notice = document.getElementById("notice");
const linkedModel = live.isModel ? data.title : ""; // the model is not in a link, so that a link says which one it is for

function notify(text) {
  notice.textContent = text;
  notice.hidden = false;
}

notice.addEventListener("click", () => { notice.hidden = true; });

// Copy only the fragment: the rest of the address contains the secret token of the server.
async function copyLink() {
  notice.hidden = true;
  let link;
  try {
    link = `#program=${await packed({ ...request, model: linkedModel })}&${address().slice(1)}`;
  } catch (error) {
    notify(`No link was copied: ${error.message}`);
    return;
  }
  try {
    await navigator.clipboard.writeText(link);
    setStatus(`Copied a link of ${link.length.toLocaleString("en")} characters. To open it, paste it into a page of relvm explore` +
      (live.isModel ? ` ${data.title}.` : "."));
  } catch {
    prompt("The browser does not allow this page to copy. Copy the link yourself:", link);
  }
}
document.getElementById("copy-link").addEventListener("click", copyLink);

const PROGRAM_LINK = /^\S*#program=(\S*)$/;

// Show the program and the options of a link.  Like a change of the text, this builds the program, but does not run it.
async function openLink(link) {
  const parts = new URLSearchParams(`program=${PROGRAM_LINK.exec(link)[1]}`), program = parts.get("program");
  parts.delete("program");
  notice.hidden = true;
  try {
    const { model, ...values } = await unpacked(program, { ...request, model: "" }, live.maxBytes);
    if (model !== linkedModel)
      throw new Error(`it contains ${model ? `options for the ONNX model ${model.slice(0, 80)}, not for ${data.title}` : "a program, but this page shows an ONNX model"}`);
    for (const { dataset: { option }, options } of optionInputs)
      if (options && ![...options].some((each) => each.value === values[option]))
        throw new Error(`it has the unknown option ${option}=${values[option].slice(0, 40)}`);
    const { text, ...chosen } = values;
    Object.assign(request, chosen);
    showOptions();
    if (!live.isModel) replaceText(text);
    isOpened = true;
    history.replaceState(null, "", `#${parts}`);
    changed(0);
  } catch (error) {
    notify(`The link was not opened: ${error.message}.`);
    if (PROGRAM_LINK.test(location.hash)) history.replaceState(null, "", isFirst ? "#" : address());
    if (isFirst) changed(0);
  }
}

// Replace the text so that Ctrl+Z brings the old one back.
function replaceText(text) {
  textarea.focus();
  textarea.select();
  document.execCommand(text ? "insertText" : "delete", false, shownText(text));
  textarea.blur();
}

addEventListener("hashchange", () => { if (PROGRAM_LINK.test(location.hash)) openLink(location.hash); });
document.addEventListener("paste", (event) => {
  const text = event.clipboardData.getData("text/plain").trim();
  if (event.target.closest?.("input") || !PROGRAM_LINK.test(text)) return;
  event.preventDefault();
  openLink(text);
});

dividerMoves("editor-divider", () => settings.editor, (x) => set("editor", clamped(Math.round(x), 120, innerWidth * 0.6)));
KEYS.r = ["run the program", run];
if (!live.isModel) KEYS.e = ["editor; Escape leaves it", () => textarea.focus()];
graphKeys.add("r").add("e");

drawText();
if (PROGRAM_LINK.test(location.hash)) openLink(location.hash);
else build();
