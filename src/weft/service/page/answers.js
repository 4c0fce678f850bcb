// Live answers: a chart for each query that is watched. Events only fill buffers; pictures are drawn once a frame at most.

import { get } from "./api.js";
import { legend, LineChart } from "./chart.js";
import { cell, count, el, table } from "./dom.js";
import { follow } from "./follow.js";
import { Series } from "./series.js";

const SHOWN = 8; // groups of a query
const WATCHED = "weft-watched";
const MOST = 12;

export const watched = () => JSON.parse(sessionStorage.getItem(WATCHED) ?? "null");
export const watch = (names) => sessionStorage.setItem(WATCHED, JSON.stringify(names.slice(-MOST)));

export function answersView(root, job) {
  const cardList = el("div", { class: "cards" });
  const rate = el("p", { class: "dim", id: "answers-seen" });
  root.append(el("h1", {}, "Live answers"), rate,
    el("p", { class: "dim" }, `Shows up to ${MOST} queries that you mark as watched in the `, el("a", { href: "#/queries" }, "list"), "; the most expensive queries if you mark none."), cardList);
  const stop = new AbortController();
  let cards = [];
  start().catch(job.failed);

  async function start() {
    const { queries } = await get("/queries");
    const there = new Set(queries.map((query) => query.name));
    const chosen = watched()?.filter((name) => there.has(name)) ?? [];
    const byCost = [...queries].sort((a, b) => b.cost - a.cost).map((query) => query.name);
    const names = chosen.length ? chosen : byCost.slice(0, 6);
    cards = names.map((name) => new AnswerCard(name, job));
    if (stop.signal.aborted) return;
    cardList.replaceChildren(...cards.map((card) => card.root));
    followAll(cards, job, stop.signal);
  }

  const tick = setInterval(() => {
    const seen = cards.reduce((sum, card) => sum + (card.series?.seen ?? 0), 0);
    rate.textContent = `${count(seen)} answers received from ${job.count(cards.length, "watched query", "watched queries")}`;
  }, 500);
  return () => { stop.abort(); clearInterval(tick); cards.forEach((card) => card.close()); };
}

// Live first and the past after it: a batch that comes twice is taken once, and none is missed in between.
export function followAll(cards, job, signal) {
  const byName = new Map(cards.map((card) => [card.name, card]));
  follow([...byName.keys()], (portion) => byName.get(portion.query)?.take(portion), signal);
  for (const card of cards) card.begin().catch(job.failed);
}

export class AnswerCard {
  constructor(name, job, { link = true, level = "h2" } = {}) {
    this.name = name;
    this.job = job;
    this.series = null;
    this.waiting = [];
    this.pending = false;
    this.paused = false;
    this.stop = job.onResume(() => this.soon());
    const canvas = el("canvas", { role: "img", "aria-label": `Answers of ${name}; the table below has the newest.` });
    this.chart = new LineChart(canvas, { time: true });
    this.pick = el("select", { "aria-label": `Column of ${name} that is drawn`, onchange: () => { this.series.value = this.pick.value; this.soon(); } });
    this.hold = el("button", { type: "button", "aria-pressed": "false", "aria-label": `Pause the chart of ${name}`, onclick: () => this.toggle() }, "Pause");
    this.keys = el("ul", { class: "keys" });
    this.note = el("p", { class: "dim" }, "waiting for answers");
    this.behind = el("div");
    this.details = el("details", { ontoggle: () => this.soon() }, el("summary", {}, "Newest rows as a table"), this.behind);
    const title = link ? el("a", { href: `#/query/${encodeURIComponent(name)}` }, name) : name;
    this.root = el("article", { class: "card chart", "aria-label": name },
      el("div", { class: "row" }, el(level, {}, title), el("span", { class: "last row" }, this.pick, this.hold)), canvas, this.keys, this.note, this.details);
  }

  async begin() {
    const past = await get(`/queries/${encodeURIComponent(this.name)}/answers?limit=2000`);
    if (past.columns.length) this.describe(past.columns, past.batches);
  }

  describe(columns, batches) {
    this.series = new Series(columns);
    this.pick.replaceChildren(...this.series.values.filter((v) => v !== null).map((value) => el("option", {}, value)));
    this.pick.value = this.series.value ?? "";
    this.pick.hidden = this.series.values.length < 2;
    for (const portion of [...batches, ...this.waiting]) this.series.take(portion);
    this.waiting = [];
    this.soon();
  }

  take(portion) {
    if (this.series) this.series.take(portion);
    else if (this.waiting.push(portion) === 1) setTimeout(() => this.series ?? this.begin().catch(this.job.failed), 300);
    this.soon();
  }

  toggle() {
    this.paused = !this.paused;
    this.hold.setAttribute("aria-pressed", String(this.paused));
    this.soon();
  }

  soon() {
    if (this.pending || this.paused || this.job.paused) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.draw(); });
  }

  draw() {
    if (!this.series) return;
    const { series } = this;
    const shown = series.largest(SHOWN);
    this.chart.show(shown);
    const labels = shown.map((one) => one.label).join("\n");
    if (labels !== this.labels) {
      this.labels = labels;
      this.keys.replaceChildren(...legend(shown.map((one) => one.label)));
    }
    const more = series.groups.size - shown.length;
    this.note.textContent = `${count(series.seen)} answers up to batch ${series.batch}` +
      (more > 0 ? `; the ${SHOWN} largest of ${count(series.groups.size)} groups` : "") + (series.left ? `; ${count(series.left)} rows of other groups are not kept here` : "");
    if (this.details.open) {
      const rows = [...series.rows].reverse().slice(0, 20).map((row) => series.names.map((name) => cell(row[name])));
      this.behind.replaceChildren(table(`Newest answers of ${this.name}`, series.names, rows));
    }
  }

  close() { this.chart.close(); this.stop(); }
}
