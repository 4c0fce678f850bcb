// The queries of the job: found by name or text, sorted, watched, paused, dropped; and new ones.

import { watch, watched } from "./answers.js";
import { drop, get, pause, resume } from "./api.js";
import { count, el, percent, say, seconds } from "./dom.js";
import { queryEditor } from "./editor.js";

const PAGE = 100;
const EVERY = 5000;
const COLUMNS = [
  ["name", "query"], ["window", "window"], ["cost_share", "cost"], ["matched_rows", "matched"], ["answers", "answers"], ["late_rows", "late"], ["lag_seconds", "lag"],
];

export function queriesView(root, job) {
  const search = el("input", { type: "search", id: "search", placeholder: "name or SQL", oninput: () => { limit = PAGE; draw(); } });
  const matches = el("p", { class: "dim", role: "status" });
  const body = el("tbody");
  const aside = el("div", { class: "card", hidden: true });
  const more = el("button", { type: "button", onclick: () => { limit += PAGE; draw(); } }, "Show more");
  const heads = COLUMNS.map(([field, word]) => el("th", { scope: "col", class: ["name", "window"].includes(field) ? "" : "n", "aria-sort": "none" },
    el("button", { type: "button", onclick: () => sortBy(field) }, word)));
  root.append(el("h1", {}, "Queries"), queryEditor(job, load), el("h2", {}, "In the job"),
    el("div", { class: "row" }, el("label", { htmlFor: "search" }, "Find"), search, matches),
    aside, el("div", { class: "scroll" }, el("table", {}, el("caption", { class: "unseen" }, "Queries of the job"),
      el("thead", {}, el("tr", {}, ...heads, el("th", { scope: "col" }, el("span", { class: "unseen" }, "actions")))), body)), more);

  let queries = [];
  let limit = PAGE;
  let order = ["cost_share", -1];

  function sortBy(field) {
    order = [field, order[0] === field ? -order[1] : field === "name" || field === "window" ? 1 : -1];
    draw();
  }

  async function load() {
    const answer = await get("/queries");
    queries = answer.queries.map((query) => ({ ...query, window: `${query.range} every ${query.slide}` }));
    drawPaused(answer.paused);
    draw();
  }

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const hits = queries.filter((q) => !wanted || q.name.toLowerCase().includes(wanted) || q.sql.toLowerCase().includes(wanted));
    const [field, way] = order;
    hits.sort((a, b) => way * (a[field] < b[field] ? -1 : a[field] > b[field] ? 1 : 0));
    heads.forEach((head, i) => head.setAttribute("aria-sort", COLUMNS[i][0] === field ? (way > 0 ? "ascending" : "descending") : "none"));
    const chosen = new Set(watched() ?? []);
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    body.replaceChildren(...hits.slice(0, limit).map((query) => line(query, chosen)));
    if (focused) [...body.querySelectorAll("button")].find((button) => button.getAttribute("aria-label") === focused)?.focus();
    matches.textContent = `${count(hits.length)} of ${job.count(queries.length, "query", "queries")}`;
    more.hidden = hits.length <= limit;
  }

  function drawPaused(paused) {
    aside.hidden = !paused.length;
    const busy = aside.contains(document.activeElement); // a button that asks "Sure?" stays what it is
    if (busy && aside.dataset.names === JSON.stringify(paused)) return;
    aside.dataset.names = JSON.stringify(paused);
    aside.replaceChildren(el("h3", {}, "Paused"), el("ul", { class: "paused" }, ...paused.map((query) => el("li", { class: "row" },
      el("strong", {}, query.name), el("code", { title: query.sql }, query.sql.slice(0, 120)),
      el("span", { class: "last row" }, changeButton("Resume", query.name, resume, "joins again with the next batch", job, load), dropButton(query.name, job, load))))));
  }

  function line(query, chosen) {
    const is = chosen.has(query.name);
    return el("tr", {},
      el("td", {}, el("a", { href: `#/query/${encodeURIComponent(query.name)}` }, query.name), query.joined ? "" : el("span", { class: "dim" }, " joins with the next batch")),
      el("td", {}, query.window), el("td", { class: "n" }, percent(query.cost_share)), el("td", { class: "n" }, count(query.matched_rows)),
      el("td", { class: "n" }, count(query.answers)), el("td", { class: "n" }, count(query.late_rows)), el("td", { class: "n" }, seconds(query.lag_seconds)),
      el("td", { class: "row" },
        el("button", { type: "button", "aria-pressed": String(is), "aria-label": `Watch ${query.name}`, onclick: () => toggle(query.name) }, "Watch"),
        pauseButton(query.name, job, load), dropButton(query.name, job, load)));
  }

  function toggle(name) {
    const now = watched() ?? [];
    watch(now.includes(name) ? now.filter((other) => other !== name) : [...now, name]);
    draw();
  }

  load().catch(job.failed);
  const timer = setInterval(() => { if (!job.paused && !document.hidden) load().catch(job.failed); }, EVERY);
  const stop = job.onPlan(load);
  return () => { clearInterval(timer); stop(); };
}

export const pauseButton = (name, job, done) => changeButton("Pause", name, pause, "leaves with the next batch and can be resumed", job, done);

function changeButton(word, name, change, told, job, done) {
  const button = el("button", { type: "button", "aria-label": `${word} ${name}`, onclick: async () => {
    button.disabled = true;
    try {
      await change(name);
      say(`${name} ${told}`);
      await done();
    } catch (error) {
      job.failed(error);
    } finally {
      button.disabled = false;
    }
  } }, word);
  return button;
}

// Asks once more in its own place before it drops.
export function dropButton(name, job, done) {
  const button = el("button", { type: "button", "aria-label": `Drop ${name}` }, "Drop");
  let sure = null;
  button.addEventListener("click", async () => {
    if (!sure) {
      button.textContent = "Sure?";
      button.setAttribute("aria-label", `Drop ${name}: sure?`);
      sure = setTimeout(() => { sure = null; button.textContent = "Drop"; button.setAttribute("aria-label", `Drop ${name}`); }, 4000);
      return;
    }
    clearTimeout(sure);
    button.disabled = true;
    try {
      await drop(name);
      say(`dropped ${name}; it leaves with the next batch`);
      await done();
    } catch (error) {
      job.failed(error);
      button.disabled = false;
    }
  });
  return button;
}
