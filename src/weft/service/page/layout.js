// From a plan to boxes: stream, phantoms, passes, trees, queries. Where there are more than fit, small ones are one box.

import { amount, percent } from "./dom.js";

const ROWS = 28; // queries and groups of them that have a box at a time
const TREES = 12;
const ROW = 17;

// Nodes {kind, label, note, why, cost, names, children}; `names` are the queries below.
export function nodes(picture, focus = null) {
  const wanted = focus && new Set(focus);
  const phantoms = picture.phantoms.map((phantom) => ({
    kind: "phantom", label: phantom.keys.join(", "), note: "phantom", children: [],
    why: ["No query uses this grouping: rows are aggregated here once, and the passes to the right are rolled up from it.",
      ...probes(picture)],
  }));
  const raw = [];
  for (const pass of picture.passes) {
    const trees = pass.trees.map((tree) => treeNode(tree, picture, wanted)).filter((tree) => tree.children.length);
    if (!trees.length) continue;
    const node = {
      kind: "pass", label: pass.keys.length ? `by ${pass.keys.join(", ")}` : "no keys", note: signature(pass), children: trees,
      why: [`${amount(pass.edge_rate)} slices per second; the pass costs ${amount(pass.pass_cost)} operations per second` +
        (pass.fold_cost ? `, ${amount(pass.fold_cost)} of them to fold its slices into those of its trees.` : "."),
        signatures(pass), ...(picture.phantoms.length && pass.phantom === null ? ["Made from rows: no phantom would be cheaper."] : [])],
    };
    if (pass.phantom === null) raw.push(node);
    else phantoms[pass.phantom].children.push(node);
  }
  const children = [...phantoms.filter((phantom) => phantom.children.length), ...raw];
  const stream = {
    kind: "stream", label: picture.source, note: `${amount(picture.rate)} rows/s`, children,
    why: [`The plan costs ${amount(picture.cost)} operations per second; one tree per query would cost ` +
      `${amount(picture.unshared)}. Sharing saves ${percent(picture.saves)}.`, ...picture.said],
  };
  return total(stream);
}

function treeNode(tree, picture, wanted) {
  const queries = tree.queries.filter((query) => !wanted || wanted.has(query.name));
  return {
    kind: "tree", label: `tree ${tree.tree}`, note: `${tree.queries.length} ${tree.queries.length === 1 ? "query" : "queries"}`,
    why: [`${amount(tree.edge_rate)} slices per second, ${amount(tree.omega)} final operations each: ` +
      `${amount(tree.final_cost)} operations per second.`, ...(tree.why.length ? tree.why : [`Technique: ${tree.technique}.`])],
    children: queries.map((query) => ({
      kind: "query", label: query.name, note: query.about, cost: query.cost, names: [query.name], children: [],
      why: [query.about, query.extras, `${percent(query.cost / (picture.cost || 1))} of the cost of all queries.`].filter(Boolean),
    })),
  };
}

const signature = (pass) => (pass.filters ? `${pass.filters} ${pass.filters === 1 ? "filter" : "filters"}` : "every row");

function signatures(pass) {
  if (!pass.filters) return "No query has a filter: every row counts for all queries.";
  const split = pass.classes > 1 ? ` They are split into ${pass.classes} classes, one pass per class.` : "";
  return `A row's signature says which of ${pass.filters} distinct filters it passes; each query reads the signatures that it needs.${split}`;
}

const probes = (picture) => (picture.phantom_cost === null ? [] :
  [`A row costs ${amount(picture.phantom_cost)} probes, ${amount(picture.phantom_unshared)} without phantoms.`]);

function total(node) {
  for (const child of node.children) total(child);
  if (node.children.length) {
    node.cost = node.children.reduce((sum, child) => sum + child.cost, 0);
    node.names = node.children.flatMap((child) => child.names);
  }
  return node;
}

// The same tree with few enough boxes: the most expensive stay, the others of a parent share one.
export function thinned(stream) {
  const passes = passesOf(stream);
  const byCost = passes.flatMap((pass) => pass.children).sort((a, b) => b.cost - a.cost);
  const shown = new Set(byCost.slice(0, byCost.length > TREES ? TREES - 1 : TREES));
  for (const pass of passes) {
    const [kept, rest] = part(pass.children, (tree) => shown.has(tree));
    for (const tree of kept) {
      const rows = Math.max(1, Math.round((ROWS * tree.cost) / (stream.cost || 1)));
      if (tree.children.length <= rows + 1) continue;
      const byCost = [...tree.children].sort((a, b) => b.cost - a.cost);
      tree.children = [...byCost.slice(0, rows), gathered("query", "queries", byCost.slice(rows))];
    }
    pass.children = kept;
    if (rest.length) {
      const queries = rest.flatMap((tree) => tree.children);
      const group = gathered("tree", "trees", rest);
      group.children = [gathered("query", "queries", queries)];
      pass.children.push(group);
    }
  }
  return stream;
}

const passesOf = (stream) => stream.children.flatMap((child) => (child.kind === "phantom" ? child.children : [child]));

const part = (items, test) => [items.filter(test), items.filter((item) => !test(item))];

function gathered(kind, many, items) {
  return {
    kind, label: `${items.length} more ${many}`, note: "", group: true, children: [],
    cost: items.reduce((sum, item) => sum + item.cost, 0), names: items.flatMap((item) => item.names),
    why: [`${items.length} ${many} that cost less than the others here. Press Enter or click to see them.`],
  };
}

// Places for a canvas of this size; returns the boxes in the order of the columns and the height that they take.
export function place(stream, width, height) {
  const fed = stream.children.some((child) => child.kind === "phantom");
  const columns = ["stream", ...(fed ? ["phantom"] : []), "pass", "tree", "query"];
  const labels = width < 700 ? 0.34 : 0.3;
  const last = width * (1 - labels);
  const x = Object.fromEntries(columns.map((kind, i) => [kind, 4 + (i * (last - 4)) / (columns.length - 1)]));
  const scale = (0.5 * height) / (stream.cost || 1);
  const boxes = [];
  let y = 22;
  const visit = (node, parent) => {
    const thick = Math.max(1.5, node.cost * scale);
    const box = { ...node, parent, x: x[node.kind], width: 12, thick, below: [] };
    boxes.push(box);
    if (node.children.length) {
      for (const child of node.children) box.below.push(visit(child, box));
      box.middle = (box.below[0].middle + box.below.at(-1).middle) / 2;
      if (node.kind === "pass" || node.kind === "phantom") y += 8;
      else if (node.kind === "tree") y += 4;
    } else {
      const slot = Math.max(ROW, thick + 3);
      box.middle = y + slot / 2;
      y += slot;
    }
    return box;
  };
  visit(stream, null);
  return { boxes, columns: columns.map((kind) => ({ kind, x: x[kind] })), height: Math.max(height, y + 8) };
}
