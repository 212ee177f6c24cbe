"use strict";
// The graph of the module, in a frame over the panes.  The frame and this page send each other messages: the node that
// is selected, and the name and the source locations of a line.

const frame = document.getElementById("graph"), graphButton = document.getElementById("to-graph");
let graphNode = null; // the node that is selected in the open graph; "" if none is; null if the graph is closed
let isLoaded = false;
let unsent = []; // messages to a frame that is not loaded yet

function openGraph(message) {
  graphNode ??= "";
  frame.hidden = false;
  document.querySelector("main").hidden = true;
  document.body.classList.add("has-graph");
  graphButton.textContent = "stages";
  if (!frame.srcdoc) frame.srcdoc = data.graph;
  if (message) send(message);
  frame.focus();
}

function closeGraph() {
  graphNode = null;
  frame.hidden = true;
  document.querySelector("main").hidden = false;
  document.body.classList.remove("has-graph");
  graphButton.textContent = "graph";
}

function send(message) {
  if (isLoaded) frame.contentWindow.postMessage(message, "*");
  else unsent.push(message);
}

// Open the graph at the node of the selected line, or close the graph.
function toggleGraph() {
  if (!data.graph) return;
  if (graphNode !== null) closeGraph();
  else if (!selected) openGraph();
  else {
    const stage = stages[shown[selected.side]], origins = stage.origins[selected.line];
    const name = stage.name === data.graphStage ? nameIn(stage.lines[selected.line]) : "";
    openGraph({ relvm: "line", name, origins: origins.map((origin) => data.origins[origin]) });
  }
  link();
}

// The variable that a line of a module binds, or "".
const nameIn = (text) => /^\s*([^\s:=(]+)(?:: .*?)? = /.exec(text)?.[1] ?? "";

// Select the line that binds a variable, or else the first line that shares a source location with it.
function showLine({ name, origins }) {
  const stage = stages.findIndex((each) => each.name === data.graphStage);
  const wanted = new Set(origins), numbers = [...data.origins.keys()].filter((number) => wanted.has(data.origins[number]));
  const related = linesOf(stages[stage], numbers);
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
  if (message.relvm === "node" && graphNode !== null) { graphNode = message.node ?? ""; link({ replace: true }); }
  if (message.relvm === "close") toggleGraph();
  if (message.relvm === "line") showLine(message);
});

graphButton.hidden = !data.graph;
graphButton.addEventListener("click", toggleGraph);
document.querySelector("[data-setting=theme]").addEventListener("change", () => send({ relvm: "theme", theme: settings.theme }));
