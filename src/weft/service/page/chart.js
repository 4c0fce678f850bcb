// Lines on a canvas: a few series over time or batches, marks where the plan changed, values under the pointer.

import { amount, el } from "./dom.js";
import { colour, HUES, onTheme } from "./theme.js";

const LEFT = 46;
const BOTTOM = 18;
const TOP = 6;
const WIDEST_BAR = 14;
const dirty = new Set();

// All charts that changed are drawn in one frame, each once.
function soon(chart) {
  if (!dirty.size) requestAnimationFrame(() => { const charts = [...dirty]; dirty.clear(); charts.forEach((one) => one.draw()); });
  dirty.add(chart);
}

// Which hue stands for which series.
export function legend(labels) {
  return labels.map((label, i) => {
    const swatch = el("span", { class: "swatch" });
    swatch.style.background = HUES[i % HUES.length];
    return el("li", {}, swatch, label);
  });
}

export class LineChart {
  // `time`: x is milliseconds, else a batch's number; `bars`: values that stand for themselves.
  constructor(canvas, { time = false, bars = false, zero = false } = {}) {
    Object.assign(this, { canvas, time, bars, zero, series: [], marks: [], pointer: null });
    canvas.addEventListener("pointermove", (event) => { this.pointer = event.offsetX; soon(this); });
    canvas.addEventListener("pointerleave", () => { this.pointer = null; soon(this); });
    this.observer = new ResizeObserver(() => soon(this));
    this.observer.observe(canvas);
    this.stopTheme = onTheme(() => soon(this));
  }

  // Series {label, points: [[x, y], ...]}, x ascending; marks are x.
  show(series, marks = []) {
    this.series = series;
    this.marks = marks;
    soon(this);
  }

  close() {
    this.observer.disconnect();
    this.stopTheme();
    dirty.delete(this);
  }

  draw() {
    const { canvas } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width) return;
    if (canvas.width !== Math.round(width * devicePixelRatio)) canvas.width = Math.round(width * devicePixelRatio);
    if (canvas.height !== Math.round(height * devicePixelRatio)) canvas.height = Math.round(height * devicePixelRatio);
    const context = canvas.getContext("2d");
    context.setTransform(devicePixelRatio, 0, 0, devicePixelRatio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui, sans-serif";
    const span = extent(this.series, this.zero);
    if (!span) {
      context.fillStyle = colour("dim");
      context.fillText("no data yet", LEFT, height / 2);
      return;
    }
    const inset = this.bars ? WIDEST_BAR / 2 : 0; // so that the first and the last bar are not cut
    const x = (value) => LEFT + inset + ((value - span.left) / (span.right - span.left || 1)) * (width - LEFT - 8 - 2 * inset);
    const y = (value) => height - BOTTOM - ((value - span.low) / (span.high - span.low || 1)) * (height - BOTTOM - TOP);
    this.axes(context, span, x, y, width, height);
    this.series.forEach((one, i) => {
      context.strokeStyle = context.fillStyle = HUES[i % HUES.length];
      if (this.bars) bars(context, one.points, x, y, span, width);
      else line(context, one.points, x, y);
    });
    this.cuts(context, span, x, height);
    if (this.pointer !== null) this.readout(context, x, y, width);
  }

  axes(context, span, x, y, width, height) {
    context.lineWidth = 1;
    for (const value of ticks(span)) {
      context.strokeStyle = colour("line");
      context.beginPath();
      context.moveTo(LEFT, y(value));
      context.lineTo(width, y(value));
      context.stroke();
      context.fillStyle = colour("dim");
      context.textAlign = "right";
      context.fillText(amount(value), LEFT - 5, y(value) + 4);
    }
    context.textAlign = "left";
    context.fillText(this.word(span.left), LEFT, height - 4);
    context.textAlign = "right";
    context.fillText(this.word(span.right), width - 4, height - 4);
    context.textAlign = "left";
  }

  cuts(context, span, x, height) {
    context.lineWidth = 1;
    context.strokeStyle = colour("wrong");
    context.setLineDash([3, 3]);
    for (const mark of this.marks) {
      if (mark < span.left || mark > span.right) continue;
      context.beginPath();
      context.moveTo(x(mark), TOP);
      context.lineTo(x(mark), height - BOTTOM);
      context.stroke();
    }
    context.setLineDash([]);
  }

  word(value) {
    return this.time ? new Date(value).toISOString().slice(11, 19) : `batch ${Math.round(value)}`;
  }

  readout(context, x, y, width) {
    const lines = [];
    let place = null;
    this.series.forEach((one, i) => {
      const point = nearest(one.points, (p) => Math.abs(x(p[0]) - this.pointer));
      if (!point) return;
      place ??= point[0];
      lines.push([HUES[i % HUES.length], `${one.label} ${amount(point[1])}`]);
    });
    if (place === null) return;
    lines.unshift([colour("dim"), this.word(place)]);
    const wide = Math.max(...lines.map(([, text]) => context.measureText(text).width)) + 12;
    const left = Math.min(Math.max(x(place) + 8, LEFT), width - wide);
    context.strokeStyle = colour("dim");
    context.beginPath();
    context.moveTo(x(place), TOP);
    context.lineTo(x(place), this.canvas.clientHeight - BOTTOM);
    context.stroke();
    context.fillStyle = colour("card");
    context.fillRect(left, TOP, wide, 15 * lines.length + 6);
    lines.forEach(([hue, text], i) => { context.fillStyle = hue; context.fillText(text, left + 6, TOP + 14 + 15 * i); });
  }
}

function extent(series, zero) {
  let left = Infinity, right = -Infinity, low = zero ? 0 : Infinity, high = zero ? 0 : -Infinity;
  for (const { points } of series) {
    for (const [x, y] of points) {
      if (x < left) left = x;
      if (x > right) right = x;
      if (y < low) low = y;
      if (y > high) high = y;
    }
  }
  if (left > right) return null;
  if (low === high) { low -= zero && low === 0 ? 0 : Math.abs(low) * 0.05 || 1; high += Math.abs(high) * 0.05 || 1; }
  // From one line of the grid to another, so that the largest value can be read off as well.
  const step = stride(low, high);
  return { left, right, low: Math.floor(low / step) * step, high: Math.ceil(high / step) * step, step };
}

function line(context, points, x, y) {
  context.lineWidth = 1.5;
  context.beginPath();
  points.forEach(([at, value], i) => (i ? context.lineTo(x(at), y(value)) : context.moveTo(x(at), y(value))));
  context.stroke();
  if (points.length === 1) context.fillRect(x(points[0][0]) - 2, y(points[0][1]) - 2, 4, 4);
}

function bars(context, points, x, y, span, width) {
  const wide = Math.max(1, Math.min(WIDEST_BAR, (width - LEFT) / Math.max(points.length, 1) - 1));
  for (const [at, value] of points) context.fillRect(x(at) - wide / 2, y(Math.max(value, 0)), wide, Math.abs(y(value) - y(0)));
}

function nearest(points, distance) {
  let best = null, least = Infinity;
  for (const point of points) { const d = distance(point); if (d < least) { least = d; best = point; } }
  return best;
}

function stride(low, high) {
  const rough = (high - low) / 3;
  return [1, 2, 5, 10].map((m) => m * 10 ** Math.floor(Math.log10(rough))).find((s) => s >= rough);
}

function ticks({ low, high, step }) {
  const values = [];
  for (let place = Math.round(low / step); place <= Math.round(high / step); place += 1) values.push(place * step || 0);
  return values;
}
