"use strict";
// Where the nodes of a directed graph are drawn: relvm/explore/draw/sugiyama.py says how, and this computes the same numbers.

// sizes: Map of node -> [width, height].  edges: of [source, target], between different nodes, no two the same.
// Gives {centres: Map of node -> [x, y], bends: for each edge its points, width, height}.
function arrange(sizes, edges, gap, { lane: laneWidth, sweeps }) {
  const downwards = withoutCycles([...sizes.keys()], edges);
  const before = new Map(), after = new Map(), widths = new Map();
  const add = (node, width) => { before.set(node, []); after.set(node, []); widths.set(node, width); };
  for (const [node, [width]] of sizes) add(node, width);
  const depth = depths([...sizes.keys()], downwards);
  const layers = Array.from({ length: 1 + Math.max(-1, ...depth.values()) }, () => []);
  for (const node of sizes.keys()) layers[depth.get(node)].push(node);
  const lanes = new Map(); // those of an edge; all edges from one node share them
  const laneOf = new Map(); // the node and the layer of a lane's place -> the place
  for (const [source, target] of downwards) {
    const lane = [];
    for (let n = depth.get(source) + 1; n < depth.get(target); n++) {
      const places = laneOf.get(source) ?? laneOf.set(source, new Map()).get(source);
      if (!places.has(n)) {
        const place = { layer: n };
        places.set(n, place);
        layers[n].push(place);
        add(place, laneWidth);
      }
      lane.push(places.get(n));
    }
    lanes.set(target, (lanes.get(target) ?? new Map()).set(source, lane));
    const path = [source, ...lane, target];
    for (let i = 1; i < path.length; i++) {
      if (after.get(path[i - 1]).includes(path[i])) continue;
      after.get(path[i - 1]).push(path[i]);
      before.get(path[i]).push(path[i - 1]);
    }
  }
  order(layers, before, after, sweeps);
  const x = across(layers, before, after, widths, gap[0], sweeps);
  const heights = layers.map((layer) => layer.reduce((most, node) => Math.max(most, sizes.get(node)?.[1] ?? 0), 0));
  const tops = [];
  let height = 0;
  for (const each of heights) { tops.push(height); height += each + gap[1]; }
  const centres = new Map([...sizes.keys()].map(
    (node) => [node, [x.get(node), tops[depth.get(node)] + heights[depth.get(node)] / 2]]));
  const bends = edges.map(([source, target]) => {
    const straight = lanes.get(target)?.get(source);
    const points = (straight ?? lanes.get(source).get(target)).flatMap(
      (place) => [[x.get(place), tops[place.layer]], [x.get(place), tops[place.layer] + heights[place.layer]]]);
    return straight ? points : points.reverse();
  });
  let width = 0;
  for (const [node, middle] of x) width = Math.max(width, middle + widths.get(node) / 2);
  return { centres, bends, width, height: Math.max(0, height - gap[1]) };
}

// The edges, those that lead back to where a walk came from turned round; each once.
function withoutCycles(nodes, edges) {
  const after = new Map(nodes.map((node) => [node, []]));
  for (const [source, target] of edges) after.get(source).push(target);
  const found = [], known = new Map(nodes.map((node) => [node, new Set()]));
  const keep = (source, target) => {
    if (!known.get(source).has(target)) found.push([source, target]);
    known.get(source).add(target);
  };
  const done = new Set();
  for (const start of nodes) {
    const path = done.has(start) ? [] : [[start, 0]];
    const open = new Set(path.length ? [start] : []);
    while (path.length) {
      const top = path[path.length - 1], [node, next] = top, targets = after.get(node);
      if (next === targets.length) {
        path.pop();
        open.delete(node);
        done.add(node);
        continue;
      }
      top[1]++;
      const target = targets[next];
      if (open.has(target)) keep(target, node);
      else {
        keep(node, target);
        if (!done.has(target)) { path.push([target, 0]); open.add(target); }
      }
    }
  }
  return found;
}

// Each node's layer.  A node that nothing leads to is right above the first that it leads to.
function depths(nodes, edges) {
  const after = new Map(nodes.map((node) => [node, []])), waits = new Map(nodes.map((node) => [node, 0]));
  for (const [source, target] of edges) {
    after.get(source).push(target);
    waits.set(target, waits.get(target) + 1);
  }
  const starts = nodes.filter((node) => waits.get(node) === 0), ready = [...starts];
  const depth = new Map(nodes.map((node) => [node, 0]));
  for (let i = 0; i < ready.length; i++) {
    for (const target of after.get(ready[i])) {
      depth.set(target, Math.max(depth.get(target), depth.get(ready[i]) + 1));
      waits.set(target, waits.get(target) - 1);
      if (waits.get(target) === 0) ready.push(target);
    }
  }
  for (const node of starts)
    if (after.get(node).length) depth.set(node, Math.min(...after.get(node).map((each) => depth.get(each))) - 1);
  return depth;
}

// Sorts each layer by where the neighbours of its nodes are in the layer before, or after, it.
function order(layers, before, after, sweeps) {
  for (let sweep = 0; sweep < sweeps; sweep++) {
    const down = sweep % 2 === 0, count = layers.length;
    for (let step = 1; step < count; step++) {
      const number = down ? step : count - 1 - step, beside = layers[down ? number - 1 : number + 1];
      const layer = layers[number], place = new Map(beside.map((node, i) => [node, i / beside.length]));
      const wanted = new Map(layer.map((node, i) => [
        node, mean((down ? before : after).get(node).map((each) => place.get(each)), i / layer.length)]));
      layer.sort((a, b) => wanted.get(a) - wanted.get(b));
    }
  }
}

// The middle of each node: near the mean of its neighbours, as far as the order and the gaps allow.
function across(layers, before, after, widths, gap, sweeps) {
  const x = new Map();
  for (const layer of layers) spread(layer, () => 0, widths, gap, x);
  for (let sweep = 0; sweep < sweeps; sweep++) {
    for (const layer of sweep % 2 === 0 ? layers : [...layers].reverse()) {
      const near = (node) => [...before.get(node), ...after.get(node)].map((each) => x.get(each));
      spread(layer, (node) => mean(near(node), x.get(node)), widths, gap, x);
    }
  }
  let left = Infinity;
  for (const [node, middle] of x) left = Math.min(left, middle - widths.get(node) / 2);
  return new Map([...x].map(([node, middle]) => [node, middle - left]));
}

// Puts a layer's nodes where they are wanted: those that would overlap side by side, around the mean of where they are
// wanted.
function spread(layer, wanted, widths, gap, x) {
  const runs = []; // of [left, width, nodes]
  for (const node of layer) {
    let width = widths.get(node), left = wanted(node) - width / 2, nodes = [node];
    while (runs.length && runs[runs.length - 1][0] + runs[runs.length - 1][1] + gap > left) {
      const [beforeLeft, beforeWidth, others] = runs.pop();
      left = (beforeLeft * others.length + (left - beforeWidth - gap) * nodes.length) / (others.length + nodes.length);
      width = beforeWidth + gap + width;
      nodes = [...others, ...nodes];
    }
    runs.push([left, width, nodes]);
  }
  for (let [left, , nodes] of runs) {
    for (const node of nodes) {
      x.set(node, left + widths.get(node) / 2);
      left += widths.get(node) + gap;
    }
  }
}

function mean(numbers, otherwise) {
  return numbers.length ? numbers.reduce((sum, each) => sum + each, 0) / numbers.length : otherwise;
}
