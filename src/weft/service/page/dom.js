// Elements, numbers and times as people read them.

export function el(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (name in made && !name.includes("-")) made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const exact = new Intl.NumberFormat("en", { maximumSignificantDigits: 6 });

export const count = (value) => (Math.abs(value) < 100000 ? whole : short).format(value);
export const amount = (value) => (Math.abs(value) < 1000 ? exact : short).format(value);
export const number = (value) => exact.format(value);
export const percent = (share) => `${(100 * share).toFixed(share > 0 && share < 0.1 ? 1 : 0)} %`;

export function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; unit += 1; }
  return `${unit ? value.toFixed(1) : value} ${units[unit]}`;
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value < 1) return `${Math.round(1000 * value)} ms`;
  if (value < 120) return `${value.toFixed(1)} s`;
  if (value < 7200) return `${(value / 60).toFixed(1)} min`;
  return value < 172800 ? `${(value / 3600).toFixed(1)} h` : `${(value / 86400).toFixed(1)} days`;
}

export const clock = (iso) => (iso ? iso.replace("T", " ").replace(/(\.\d+)?Z$/, "") : "–");

export function cell(value) {
  if (value === null || value === undefined) return "NULL";
  if (typeof value === "number") return number(value);
  if (typeof value === "object") return Object.values(value).map(cell).join(" – ");
  return /^\d{4}-\d\d-\d\dT/.test(value) ? clock(value) : String(value);
}

// A table behind a picture: what the picture shows, for those who read.
export function table(caption, heads, rows) {
  const head = heads.map((word) => el("th", { scope: "col", class: word.number ? "n" : "" }, word.label ?? word));
  const body = rows.map((row) => el("tr", {}, ...row.map((value, i) =>
    el("td", { class: heads[i].number ? "n" : "" }, value instanceof Node ? value : String(value)))));
  return el("div", { class: "scroll" },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body)));
}

// For screen readers; the same words twice are said once.
export function say(text) {
  const place = document.getElementById("said");
  if (place.textContent !== text) place.textContent = text;
}
