// One query's answers as series: which column is the time, which tell groups apart, which have values. All of it bounded.

export const POINTS = 600; // of a series
export const SERIES = 400; // of a query
const ROWS = 50; // of the table

const NUMBER = /^(u?int\d+|float|double|halffloat|decimal)/;
const INNER = ["revision", "retracted"].map((word) => `weft_${word}`);

export class Series {
  constructor(columns) {
    const plain = columns.filter(({ name }) => !INNER.includes(name));
    const window = plain.find(({ type }) => /^struct<start: timestamp.*end: timestamp/.test(type));
    const times = plain.filter(({ type }) => type.startsWith("timestamp"));
    const end = times.find(({ name }) => /end|until/i.test(name)) ?? times[0];
    this.instant = window ? (row) => row[window.name]?.end : end ? (row) => row[end.name] : null;
    const numbers = plain.filter(({ type }) => NUMBER.test(type)).map(({ name }) => name);
    this.keys = plain.filter((c) => c !== window && !times.includes(c) && !NUMBER.test(c.type)).map(({ name }) => name);
    this.values = numbers.length ? numbers : [null];
    this.value = this.values.at(-1);
    this.names = columns.map(({ name }) => name);
    this.groups = new Map();
    this.rows = [];
    this.seen = 0;
    this.left = 0;
    this.batch = -1;
  }

  // A portion of a batch that was not seen yet.
  take({ batch, count, rows }) {
    if (batch <= this.batch) return;
    this.batch = batch;
    this.seen += count;
    for (const row of rows) this.put(row, batch);
    this.rows = [...this.rows, ...rows].slice(-ROWS);
  }

  put(row, batch) {
    const at = this.instant ? Date.parse(this.instant(row)) : batch;
    if (Number.isNaN(at)) return;
    const key = this.keys.map((name) => row[name] ?? "NULL").join(", ");
    let group = this.groups.get(key);
    if (!group) {
      if (this.groups.size >= SERIES) { this.left += 1; return; }
      this.groups.set(key, (group = { key, points: [] }));
    }
    const { points } = group;
    const point = [at, ...this.values.map((name) => (name === null ? 1 : Number(row[name] ?? NaN)))];
    let i = points.length;
    while (i > 0 && points[i - 1][0] > at) i -= 1;
    if (i > 0 && points[i - 1][0] === at) points[i - 1] = point; // a window that is answered again
    else points.splice(i, 0, point);
    if (points.length > POINTS) points.splice(0, points.length - POINTS);
  }

  // The groups with the largest newest values, as a chart wants them.
  largest(limit) {
    const column = 1 + this.values.indexOf(this.value);
    const newest = (group) => Math.abs(group.points.at(-1)?.[column]) || 0;
    return [...this.groups.values()]
      .sort((a, b) => newest(b) - newest(a) || (a.key < b.key ? -1 : 1))
      .slice(0, limit)
      .map(({ key, points }) => ({
        label: key || (this.value ?? "answers"),
        points: points.filter((p) => Number.isFinite(p[column])).map((p) => [p[0], p[column]]),
      }));
  }
}
