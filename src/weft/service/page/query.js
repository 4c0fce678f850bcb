// One query: its SQL, where it stands, its share of the cost, and its answers.

import { AnswerCard, followAll } from "./answers.js";
import { get } from "./api.js";
import { amount, clock, count, el, percent, seconds } from "./dom.js";
import { dropButton, pauseButton } from "./queries.js";
import { highlight } from "./sql.js";

export function queryView(root, job, name) {
  const facts = el("dl", { class: "facts" });
  const sql = el("pre", { class: "sql", tabIndex: 0, "aria-label": "SQL" });
  const card = new AnswerCard(name, job, { link: false });
  const stop = new AbortController();
  const gone = () => { location.hash = "#/queries"; };
  root.append(el("div", { class: "row" }, el("h1", {}, name), el("span", { class: "last row" }, pauseButton(name, job, gone), dropButton(name, job, gone))),
    el("div", { class: "card" }, sql), facts, card.root);

  async function look() {
    const query = await get(`/queries/${encodeURIComponent(name)}`);
    if (!sql.childNodes.length) sql.replaceChildren(...highlight(query.sql));
    const rows = {
      "window": `${query.range} every ${query.slide}`,
      "share of the cost": `${percent(query.cost_share)}, ${amount(Number(query.cost.toPrecision(3)))} operations per second`,
      "tree": query.tree,
      "keys": query.keys.join(", ") || "none",
      "filter": query.where ?? "none",
      "first window": query.joined ? (query.since ? clock(query.since) : "from the start") : "joins with the next batch",
      "until": query.until ? clock(query.until) : "stays",
      "matched rows": count(query.matched_rows),
      "answers": count(query.answers),
      "late rows": count(query.late_rows),
      "lag": seconds(query.lag_seconds),
    };
    facts.replaceChildren(...Object.entries(rows).map(([word, value]) => el("div", {}, el("dt", {}, word), el("dd", {}, String(value)))));
  }

  look().then(() => { if (!stop.signal.aborted) followAll([card], job, stop.signal); }).catch((error) => {
    job.failed(error);
    if (error.problem?.status === 404) sql.textContent = error.problem.what;
  });
  const unwatch = job.onBatch(() => (job.paused ? null : look()));
  return () => { stop.abort(); unwatch(); card.close(); };
}
