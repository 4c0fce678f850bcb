// The page: which view is shown, where the job stands, and who wants to know when that changes.

import { answersView } from "./answers.js";
import { get } from "./api.js";
import { batchesView } from "./batches.js";
import { bytes, clock, count, el, say, seconds } from "./dom.js";
import { planView } from "./plan.js";
import { queriesView } from "./queries.js";
import { queryView } from "./query.js";
import { startTheme } from "./theme.js";

const EVERY = 1000;
const AGAIN = 15000; // phantoms may change without a change of the plan

const listeners = { plan: new Set(), batch: new Set(), resume: new Set() };
const subscribe = (kind) => (listener) => {
  listeners[kind].add(listener);
  return () => listeners[kind].delete(listener);
};

// What views know of the job.
const job = {
  paused: false,
  onPlan: subscribe("plan"),
  onBatch: subscribe("batch"),
  onResume: subscribe("resume"),
  count: (value, one, many) => `${count(value)} ${value === 1 ? one : many}`,
  failed(error) {
    if (error.name === "AbortError") return;
    if (!error.problem) console.error(error);
    health(error.problem ? `${error.problem.what} ${error.problem.way_out}` : "the service does not answer; trying again", "wrong");
  },
};

const tell = (kind) => listeners[kind].forEach((listener) => Promise.resolve(listener()).catch(job.failed));

function health(text, how) {
  const place = document.getElementById("health");
  if (place.textContent !== text) place.textContent = text;
  place.className = how;
}

const FIGURES = {
  "rows / s": (s) => count(s.rows_per_second),
  "answers / s": (s) => count(s.answers_per_second),
  "lag": (s) => seconds(s.lag_seconds),
  "watermark": (s) => clock(s.watermark).slice(-8),
  "late rows": (s) => count(s.late),
  "batch": (s) => (s.batch === null ? "–" : count(s.batch)),
  "queries in trees": (s) => `${count(s.queries)} in ${count(s.trees)}`,
  "state": (s) => bytes(s.state_bytes),
};

const cells = Object.fromEntries(Object.keys(FIGURES).map((name) => [name, el("dd", {}, "–")]));

function show(status) {
  for (const [name, of] of Object.entries(FIGURES)) {
    const text = of(status);
    if (cells[name].textContent !== text) cells[name].textContent = text;
  }
  if (!status.running) health(`stopped: ${status.failure}`, "wrong");
  else if (Object.keys(status.failed).length) health(`running; ${Object.entries(status.failed).map(([name, why]) => `${name} left: ${why}`).join("; ")}`, "wrong");
  else if (status.waiting.length) health(`running; backfill in progress: ${status.waiting.join(", ")}`, "good");
  else health("running", "good");
}

let last = { batch: undefined, plan: undefined, told: 0 };

async function look() {
  try {
    const status = await get("/status?brief=true");
    if (!job.paused) show(status);
    const due = performance.now() - last.told > AGAIN;
    if (last.plan !== undefined && (status.plan_changes !== last.plan || due)) tell("plan");
    if (status.plan_changes !== last.plan || due) last.told = performance.now();
    if (last.batch !== undefined && status.batch !== last.batch) tell("batch");
    last = { ...last, batch: status.batch, plan: status.plan_changes };
  } catch (error) {
    job.failed(error);
  }
  setTimeout(look, EVERY);
}

const VIEWS = { "": ["Plan", planView], answers: ["Answers", answersView], queries: ["Queries", queriesView], batches: ["Batches", batchesView] };
let leave = () => {};

function route(event) {
  const [word, ...rest] = location.hash.replace(/^#\/?/, "").split("/");
  if (location.hash === "#view") return;
  const name = rest.length ? decodeURIComponent(rest.join("/")) : "";
  const [title, view] = word === "query" && name ? [name, queryView] : VIEWS[word] ?? VIEWS[""];
  leave();
  const root = document.getElementById("view");
  root.replaceChildren();
  document.title = `${title} – weft`;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#/${word}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  leave = view(root, job, name);
  if (event) { root.focus({ preventScroll: true }); scrollTo(0, 0); say(title); }
}

document.getElementById("figures").append(...Object.entries(cells).map(([name, place]) => el("div", {}, el("dt", {}, name), place)));
document.getElementById("pause").addEventListener("click", ({ currentTarget: button }) => {
  job.paused = !job.paused;
  button.setAttribute("aria-pressed", String(job.paused));
  say(job.paused ? "charts are paused; the job continues" : "charts are updated again");
  if (!job.paused) tell("resume");
});
startTheme();
addEventListener("hashchange", route);
route();
look();
