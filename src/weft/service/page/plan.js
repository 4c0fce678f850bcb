// The plan as a picture on a canvas: bands as wide as what flows through them costs, why on hover, focus and arrow keys.

import { get } from "./api.js";
import { amount, el, percent, say, table } from "./dom.js";
import { nodes, place, thinned } from "./layout.js";
import { colour, onTheme } from "./theme.js";

const TITLES = { stream: "stream", phantom: "phantoms", pass: "passes and signatures", tree: "trees", query: "queries" };

export function planView(root, job) {
  const title = el("h1", {}, "The plan");
  const saved = el("p", { class: "saved" });
  const back = el("button", { type: "button", hidden: true, onclick: () => focusOn(null) }, "Whole plan");
  const canvas = el("canvas", { tabIndex: 0, role: "application", "aria-label": "The plan. Arrow keys move from stream to queries, Enter zooms in or opens a query, Escape goes back." });
  const tip = el("div", { class: "tip" });
  const behind = el("div");
  const details = el("details", { ontoggle: () => fillTable() }, el("summary", {}, "The plan as a table"), behind);
  root.append(title, saved, el("div", { class: "card picture" }, back, canvas, tip, details));

  let picture = null;
  let focus = null;
  let placed = { boxes: [], columns: [], height: 0 };
  let chosen = null;
  let waiting = false;

  async function load() {
    picture = await get("/picture");
    const count = picture.passes.flatMap((pass) => pass.trees).length;
    saved.textContent = `${job.count(picture.passes.flatMap((p) => p.trees.flatMap((t) => t.queries)).length, "query", "queries")}, ` +
      `${job.count(count, "tree", "trees")}, ${job.count(picture.passes.length, "pass", "passes")} over ${picture.source}. ` +
      `Right now sharing saves ${percent(picture.saves)}: ${amount(picture.cost)} operations per second instead of ${amount(picture.unshared)} (${picture.strategy}).`;
    arrange();
    fillTable();
  }

  function arrange() {
    if (!picture || !canvas.clientWidth) return;
    if (focus) {
      const there = new Set(picture.passes.flatMap((pass) => pass.trees.flatMap((tree) => tree.queries.map((query) => query.name))));
      focus = focus.filter((name) => there.has(name));
      if (!focus.length) focus = null;
    }
    back.hidden = !focus;
    canvas.style.height = "";
    const { clientWidth: width, clientHeight: height } = canvas;
    const before = chosen && key(chosen);
    placed = place(thinned(nodes(picture, focus)), width, height);
    chosen = placed.boxes.find((box) => key(box) === before) ?? null;
    canvas.style.height = `${placed.height}px`;
    canvas.width = Math.round(width * devicePixelRatio);
    canvas.height = Math.round(placed.height * devicePixelRatio);
    explain();
    redraw();
  }

  const key = (box) => `${box.kind} ${box.label}`;

  function focusOn(names) {
    focus = names;
    chosen = null;
    arrange();
  }

  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw(canvas.getContext("2d"), placed, chosen);
      if (placed.boxes.length && !performance.getEntriesByName("picture").length) performance.mark("picture");
    });
  }

  function explain() {
    const box = chosen ?? placed.boxes[0];
    if (!box) return;
    const heading = `${box.kind === "query" && box.group ? "queries" : box.kind} ${box.label}`;
    tip.replaceChildren(el("strong", {}, heading), `${amount(box.cost)} operations per second, ${percent(box.cost / (picture.cost || 1))} of the plan`,
      ...box.why.map((line) => el("div", { class: "dim" }, line)));
  }

  function choose(box, aloud) {
    if (chosen === box) return;
    chosen = box;
    explain();
    if (aloud && box) say(`${box.kind} ${box.label}, ${amount(box.cost)} operations per second. ${box.why.join(" ")}`);
    redraw();
  }

  function open(box) {
    if (!box) return;
    if (box.kind === "query" && !box.group) location.hash = `#/query/${encodeURIComponent(box.label)}`;
    else if (box.kind !== "stream" && box.names.length < placed.boxes[0].names.length) focusOn(box.names);
  }

  const at = (event) => hit(placed.boxes, event.offsetX, event.offsetY);
  canvas.addEventListener("pointermove", (event) => choose(at(event), false));
  canvas.addEventListener("pointerleave", () => choose(null, false));
  canvas.addEventListener("click", (event) => open(at(event)));
  canvas.addEventListener("keydown", (event) => {
    const box = chosen ?? placed.boxes[0];
    if (!box) return;
    const level = placed.boxes.filter((other) => other.kind === box.kind);
    const next = {
      ArrowRight: () => box.below[0],
      ArrowLeft: () => box.parent,
      ArrowDown: () => level[level.indexOf(box) + 1],
      ArrowUp: () => level[level.indexOf(box) - 1],
      Home: () => placed.boxes[0],
    }[event.key];
    if (next) choose(next() ?? box, true);
    else if (event.key === "Enter") open(chosen);
    else if (event.key === "Escape") focusOn(null);
    else return;
    event.preventDefault();
  });

  function fillTable() {
    if (!details.open || !picture) return;
    const rows = picture.passes.flatMap((pass) => pass.trees.flatMap((tree) => tree.queries.map((query) => [
      el("a", { href: `#/query/${encodeURIComponent(query.name)}` }, query.name), query.about, pass.keys.join(", "), tree.tree,
      pass.phantom === null ? "" : picture.phantoms[pass.phantom].keys.join(", "), amount(query.cost), percent(query.cost / (picture.cost || 1))])));
    behind.replaceChildren(table("Queries by pass and tree", ["query", "aggregates and window", "keys", { label: "tree", number: true },
      "phantom", { label: "ops/s", number: true }, { label: "share", number: true }], rows));
  }

  const resized = new ResizeObserver(() => arrange());
  resized.observe(root);
  const stopTheme = onTheme(redraw);
  const stop = job.onPlan(load);
  load().catch(job.failed);
  return () => { resized.disconnect(); stopTheme(); stop(); };
}

function hit(boxes, x, y) {
  const inside = (box) => Math.abs(y - box.middle) <= Math.max(box.thick, 15) / 2 && x >= box.x - 4 && x <= box.x + box.width + labelRoom(box);
  return boxes.findLast(inside) ?? null;
}

const labelRoom = (box) => (box.kind === "query" ? 600 : 70);

function draw(context, placed, chosen) {
  const { canvas } = context;
  const lit = chosen && related(chosen);
  context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  const ink = colour("ink");
  const dim = colour("dim");
  // A rim in the colour of the card keeps labels readable where they lie over bands.
  context.strokeStyle = colour("card");
  context.lineWidth = 3;
  context.lineJoin = "round";
  const hues = Object.fromEntries(placed.columns.map(({ kind }) => [kind, colour(kind)]));
  context.fillStyle = dim;
  placed.columns.forEach(({ kind, x }, i) => {
    const room = (placed.columns[i + 1]?.x ?? canvas.width / devicePixelRatio) - x - 6;
    context.fillText(clipped(context, TITLES[kind], room), x, 8);
  });
  for (const box of placed.boxes) {
    let from = box.middle - box.below.reduce((sum, child) => sum + child.thick, 0) / 2;
    for (const child of box.below) {
      context.globalAlpha = lit ? (lit.has(child) && lit.has(box) ? 0.55 : 0.1) : 0.28;
      band(context, box.x + box.width, from + child.thick / 2, child.x, child.middle, child.thick, hues[child.kind]);
      from += child.thick;
    }
  }
  for (const box of placed.boxes) {
    context.globalAlpha = lit && !lit.has(box) ? 0.35 : 1;
    context.fillStyle = hues[box.kind];
    context.fillRect(box.x, box.middle - box.thick / 2, box.width, box.thick);
    const room = (box.kind === "query" ? canvas.width / devicePixelRatio : nextColumn(placed, box)) - box.x - box.width - 8;
    label(context, box, room, ink, dim);
  }
  context.globalAlpha = 1;
}

function band(context, x0, y0, x1, y1, thick, hue) {
  const bend = (x0 + x1) / 2;
  const half = thick / 2;
  context.beginPath();
  context.moveTo(x0, y0 - half);
  context.bezierCurveTo(bend, y0 - half, bend, y1 - half, x1, y1 - half);
  context.lineTo(x1, y1 + half);
  context.bezierCurveTo(bend, y1 + half, bend, y0 + half, x0, y0 + half);
  context.fillStyle = hue;
  context.fill();
}

const nextColumn = (placed, box) => placed.columns.find(({ x }) => x > box.x)?.x ?? Infinity;

function label(context, box, room, ink, dim) {
  const x = box.x + box.width + 5;
  const name = clipped(context, box.label, room);
  rimmed(context, name, x, box.middle, ink);
  const left = room - context.measureText(`${name}  `).width;
  if (left > 40 && box.note) {
    rimmed(context, clipped(context, box.note, left), x + context.measureText(`${name}  `).width, box.middle, dim);
  }
}

function rimmed(context, text, x, y, hue) {
  context.strokeText(text, x, y);
  context.fillStyle = hue;
  context.fillText(text, x, y);
}

function clipped(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let length = text.length;
  while (length > 1 && context.measureText(`${text.slice(0, length)}…`).width > room) length -= 1;
  return `${text.slice(0, length)}…`;
}

function related(box) {
  const related = new Set([box]);
  for (let above = box.parent; above; above = above.parent) related.add(above);
  const down = (node) => node.below.forEach((child) => { related.add(child); down(child); });
  down(box);
  return related;
}
