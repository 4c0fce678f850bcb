// Writing a query: colours, what it would cost while it is written, and a refusal under the words that it is about.

import { post } from "./api.js";
import { amount, el, say } from "./dom.js";
import { highlight, placeOf } from "./sql.js";

const PAUSE = 500; // after the last key, before the service is asked

export function queryEditor(job, added) {
  const area = el("textarea", { id: "sql", spellcheck: false, autocapitalize: "off", rows: 6, "aria-describedby": "refusal preview",
    placeholder: "CREATE VIEW busy AS SELECT ..., count(*) AS n FROM ... GROUP BY ..., window(ts, '1 minute', '10 seconds')" });
  const colours = el("pre", { "aria-hidden": "true" });
  const refusal = el("div", { id: "refusal", role: "alert" });
  const preview = el("div", { id: "preview", class: "preview", role: "status" });
  const since = el("select", { id: "since" }, el("option", { value: "now" }, "the next window"), el("option", { value: "state" }, "the first complete window"));
  const add = el("button", { type: "submit" }, "Add");
  const form = el("form", { class: "card", onsubmit: (event) => { event.preventDefault(); submit(); } },
    el("label", { htmlFor: "sql" }, "New queries, in Spark SQL; ", el("kbd", {}, "Ctrl+Enter"), " adds them"),
    el("div", { class: "editor" }, area, colours), refusal, preview,
    el("div", { class: "row" }, el("label", { htmlFor: "since" }, "First window"), since, add));

  let timer = null;
  let asking = null;
  let wrong = null;

  function paint() {
    colours.replaceChildren(...highlight(area.value, wrong), "\n");
    colours.scrollTop = area.scrollTop;
    if (wrong) area.setAttribute("aria-invalid", "true");
    else area.removeAttribute("aria-invalid");
  }

  function typed() {
    wrong = null;
    refusal.replaceChildren();
    paint();
    clearTimeout(timer);
    timer = setTimeout(ask, PAUSE);
  }

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    preview.replaceChildren();
    if (!area.value.trim()) return;
    try {
      const estimate = await post("/preview", { sql: area.value }, { signal: asking.signal });
      const more = estimate.alone ? `${amount(estimate.more)} operations per second more` : "";
      const share = estimate.queries.map((query) => query.shares_with
        ? `${query.name} shares tree ${query.tree} with ${job.count(query.shares_with, "query", "queries")}`
        : `${query.name} has its own tree, ${query.tree}`);
      preview.replaceChildren(el("strong", {}, `Costs ${more}`), ` (alone ${amount(estimate.alone)}): ${share.join("; ")}.`,
        el("div", { class: "dim" }, `The job: ${amount(estimate.cost_before)} now, ${amount(estimate.cost_after)} with it; ${job.count(estimate.trees_after, "tree", "trees")}, ${estimate.trees_before} now.`));
    } catch (error) {
      if (error.name !== "AbortError") refuse(error);
    }
  }

  function refuse(error) {
    if (!error.problem) return job.failed(error);
    const { what, where, way_out: wayOut } = error.problem;
    wrong = placeOf(area.value, where);
    paint();
    preview.replaceChildren();
    refusal.replaceChildren(el("div", { class: "refusal" },
      el("strong", { class: "wrong" }, where ? `Line ${where.line}, column ${where.column}: ${what}` : what),
      where ? el("pre", {}, where.snippet) : null, wayOut ? el("div", {}, wayOut) : null));
    return undefined;
  }

  async function submit() {
    clearTimeout(timer);
    asking?.abort();
    add.disabled = true;
    try {
      const { added: names } = await post("/queries", { sql: area.value, since: since.value });
      area.value = "";
      typed();
      say(`added ${names.join(", ")}; they join with the next batch`);
      added(names);
    } catch (error) {
      refuse(error);
    } finally {
      add.disabled = false;
    }
  }

  area.addEventListener("input", typed);
  area.addEventListener("scroll", () => { colours.scrollTop = area.scrollTop; });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); submit(); }
  });
  return form;
}
