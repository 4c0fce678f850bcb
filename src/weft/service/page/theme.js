// Light, dark, or the system's setting; canvases ask here for colours and are told when they change.

const ORDER = ["system", "light", "dark"];
const watchers = new Set();

export function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

const probe = document.createElement("span");
probe.hidden = true;

export const HUES = ["#3b7dd8", "#d8843b", "#3ba776", "#b44fc0", "#c94f5c", "#8a8f2a", "#4fb0c0", "#8a6bd1"];

export function onTheme(redraw) {
  watchers.add(redraw);
  return () => watchers.delete(redraw);
}

function apply(theme) {
  if (theme === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  button.textContent = `Theme: ${theme}`;
  for (const redraw of watchers) redraw();
}

export function startTheme() {
  document.body.append(probe);
  let theme = localStorage.getItem("weft-theme") ?? "system";
  if (!ORDER.includes(theme)) theme = "system";
  apply(theme);
  document.getElementById("theme").addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    localStorage.setItem("weft-theme", theme);
    apply(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(theme));
}
