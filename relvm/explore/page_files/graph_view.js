"use strict";
// The graph of the module, in a frame in place of the stages.  The frame and this page send each other messages: the node
// that is selected, and the name and the source locations of a line.

const frame = document.getElementById("graph"), graphButton = document.getElementById("to-graph");
let graphNode = null; // the node that is selected in the open graph; "" if none is; null if the graph is closed
let isLoaded = false;
let unsent = []; // messages to a frame that is not loaded yet
let nextGraph = null; // the page that the frame loads when the one in it has said what it shows
let loadGraph = data.graph ? () => { if (!frame.srcdoc) frame.srcdoc = data.graph; } : null; // null: there is no graph
let nodeChosen = () => {}; // called with the source locations of the node that is selected in the graph

function openGraph(message) {
  graphNode ??= "";
  frame.hidden = false;
  document.body.classList.add("has-graph");
  applySettings();
  graphButton.textContent = "stages";
  loadGraph();
  if (message) send(message);
  frame.focus();
}

function closeGraph() {
  graphNode = null;
  frame.hidden = true;
  document.body.classList.remove("has-graph");
  applySettings();
  graphButton.textContent = "graph";
}

function send(message) {
  if (isLoaded) frame.contentWindow.postMessage(message, "*");
  else unsent.push(message);
}

// Show another graph.  What is open and selected in the old one, and its position, stay as far as the new one has it.
function replaceGraph(page) {
  if (!isLoaded) { frame.srcdoc = page; return; }
  nextGraph = page;
  send({ relvm: "leave" });
}

// Open the graph at the node of the selected line, or close the graph.
function toggleGraph() {
  if (!loadGraph) return;
  if (graphNode !== null) closeGraph();
  else if (!selected) openGraph();
  else {
    const stage = stages[shown[selected.side]];
    const name = stage.name === data.graphStage ? nameIn(stage.lines[selected.line]) : "";
    openGraph({ relvm: "line", name, origins: namesOf(stage.origins[selected.line]) });
  }
  link();
}

const namesOf = (numbers) => numbers.map((number) => origins[number]);
const numbersOf = (names) => { const wanted = new Set(names); return [...origins.keys()].filter((number) => wanted.has(origins[number])); };

// The variable that a line of a module binds, or "".
const nameIn = (text) => /^\s*([^\s:=(]+)(?:: .*?)? = /.exec(text)?.[1] ?? "";

// Select the line that binds a variable, or else the first line that shares a source location with it.
function showLine({ name, origins: names }) {
  const stage = stages.findIndex((each) => each.name === data.graphStage);
  const related = linesOf(stages[stage], numbersOf(names));
  const lines = [...stages[stage].lines.keys()].filter((line) => nameIn(stages[stage].lines[line]) === name);
  const line = lines.find((each) => related.has(each)) ?? lines[0] ?? Math.min(...related);
  closeGraph();
  choose(stage);
  select("right", line);
  link();
}

addEventListener("message", ({ data: message, source }) => {
  if (source !== frame.contentWindow) return;
  if (message.relvm === "ready") {
    isLoaded = true;
    send({ relvm: "theme", theme: settings.theme });
    unsent.forEach(send);
    unsent = [];
  }
  if (message.relvm === "node" && graphNode !== null) {
    graphNode = message.node ?? "";
    nodeChosen(message.origins);
    link({ replace: true });
  }
  if (message.relvm === "left" && nextGraph !== null) {
    isLoaded = false;
    unsent = [{ relvm: "enter", ...message.state }];
    frame.srcdoc = nextGraph;
    nextGraph = null;
  }
  if (message.relvm === "close") toggleGraph();
  if (message.relvm === "line") showLine(message);
});

graphButton.hidden = !loadGraph;
graphButton.addEventListener("click", toggleGraph);
document.querySelector("[data-setting=theme]").addEventListener("change", () => send({ relvm: "theme", theme: settings.theme }));
