// Batches over time: rows, seconds, answers, late rows, lag of the watermark, and plan changes.

import { get } from "./api.js";
import { legend, LineChart } from "./chart.js";
import { amount, clock, count, el, seconds, table } from "./dom.js";

const KEPT = 500;
const PANELS = [
  ["Rows per batch", { bars: true, zero: true }, { rows: (b) => b.rows }],
  ["Seconds per batch", { zero: true }, { "total": (b) => b.seconds, "rows to partials": (b) => b.phases.native, "partials to answers": (b) => b.phases.final }],
  ["Answers per batch", { bars: true, zero: true }, { answers: (b) => b.answers }],
  ["Late rows per batch", { bars: true, zero: true }, { late: (b) => b.late }],
  ["Lag of the watermark behind the latest row, in seconds", { zero: true }, { seconds: (b) => watermarkLag(b) }],
  ["State written per batch, in bytes", { zero: true }, { state: (b) => b.state_bytes, record: (b) => b.record_bytes }],
];

const watermarkLag = (batch) => (batch.watermark && batch.latest ? (Date.parse(batch.latest) - Date.parse(batch.watermark)) / 1000 : null);

export function batchesView(root, job) {
  const panels = PANELS.map(([title, how, lines]) => {
    const canvas = el("canvas", { role: "img", "aria-label": `${title}; the table below has the numbers.` });
    const chart = new LineChart(canvas, how);
    const labels = Object.keys(lines);
    const keys = labels.length > 1 ? el("ul", { class: "keys" }, ...legend(labels)) : null;
    return { chart, lines, root: el("article", { class: "card chart" }, el("h2", {}, title), canvas, keys) };
  });
  const numbers = el("div");
  const details = el("details", { ontoggle: () => fill() }, el("summary", {}, "Batches as a table"), numbers);
  const changes = el("div");
  root.append(el("h1", {}, "Batches"), el("p", { class: "dim" }, "Dashed lines mark plan changes."),
    el("div", { class: "cards" }, ...panels.map((panel) => panel.root)), details, el("h2", {}, "Plan changes"), changes);

  let batches = [];
  let marks = [];

  async function look() {
    const newest = batches.at(-1)?.batch ?? -1;
    const received = (await get(`/batches?limit=${batches.length ? 20 : KEPT}`)).batches;
    const fresh = received.filter((batch) => batch.batch > newest);
    if (!fresh.length) return;
    batches = [...batches, ...fresh].slice(-KEPT);
    if (!job.paused) draw();
  }

  function draw() {
    for (const { chart, lines } of panels) {
      chart.show(Object.entries(lines).map(([label, of]) => ({
        label, points: batches.map((batch) => [batch.batch, of(batch)]).filter(([, value]) => Number.isFinite(value)),
      })), marks);
    }
    fill();
  }

  function fill() {
    if (!details.open) return;
    numbers.replaceChildren(table("The latest batches, newest first",
      ["batch", "rows", "partials", "answers", "late", "seconds", "watermark", "latest row"].map((label, i) => (i < 6 ? { label, number: true } : label)),
      [...batches].reverse().slice(0, 50).map((b) => [b.batch, count(b.rows), count(b.partials), count(b.answers), count(b.late), seconds(b.seconds), clock(b.watermark), clock(b.latest)])));
  }

  async function lookAtChanges() {
    const planChanges = (await get("/changes")).changes;
    marks = planChanges.slice(1).map((change) => change.batch);
    changes.replaceChildren(table("Plan changes, newest first",
      [{ label: "from batch", number: true }, "why", { label: "cost before", number: true }, { label: "after", number: true }, { label: "queries", number: true }, { label: "trees", number: true }],
      [...planChanges].reverse().slice(0, 100).map((c) => [c.batch, c.reason, c.cost_before === null ? "" : amount(c.cost_before), c.cost_after === null ? "" : amount(c.cost_after), c.queries, c.trees])));
    draw();
  }

  const stops = [job.onBatch(look), job.onPlan(lookAtChanges), job.onResume(draw)];
  Promise.all([look(), lookAtChanges()]).catch(job.failed);
  return () => { stops.forEach((stop) => stop()); panels.forEach((panel) => panel.chart.close()); };
}
