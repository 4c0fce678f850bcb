// Spark SQL in colours.

const KEYWORDS = new Set(("select from where group by having as and or not in is null between like case when then else end create replace " +
  "view temp temporary filter window range slide at most interval for until distinct cast true false over on rlike").split(" "));
const NO_CALLS = new Set(["in", "as", "and", "or", "not", "by", "over", "filter", "when", "then", "else"]);
const TOKEN = /(--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|('(?:[^'\\]|\\.|'')*'?|"(?:[^"\\]|\\.)*"?)|(`[^`]*`?)|(\d+(?:\.\d+)?(?:e[+-]?\d+)?)|([A-Za-z_]\w*)|(\s+)|([\s\S])/giy;

// [{text, kind, start}], which together are the text.
export function tokens(text) {
  const pieces = [];
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const [all, comment, string, , digits, word] = match;
    let kind = comment ? "comment" : string ? "string" : digits ? "number" : "";
    if (word) kind = wordKind(word.toLowerCase(), text.slice(TOKEN.lastIndex, TOKEN.lastIndex + 20));
    pieces.push({ text: all, kind, start: match.index });
  }
  return pieces;
}

function wordKind(word, after) {
  if (/^\s*\(/.test(after) && !NO_CALLS.has(word)) return "call";
  return KEYWORDS.has(word) ? "keyword" : "";
}

// Spans, and a mark around what lies between two places of the text.
export function highlight(text, wrong = null) {
  const nodes = [];
  for (const { text: part, kind, start } of tokens(text)) {
    for (const [piece, marked] of cut(part, start, wrong)) {
      const span = document.createElement(marked ? "mark" : "span");
      span.className = kind;
      span.textContent = piece;
      nodes.push(span);
    }
  }
  return nodes;
}

function cut(part, start, wrong) {
  if (!wrong || wrong.end <= start || wrong.start >= start + part.length) return [[part, false]];
  const from = Math.max(0, wrong.start - start);
  const to = Math.min(part.length, wrong.end - start);
  return [[part.slice(0, from), false], [part.slice(from, to), true], [part.slice(to), false]].filter(([piece]) => piece);
}

// Where in the text a refusal points: the service counts lines and columns from 1, and draws carets under the words.
export function placeOf(text, where) {
  if (!where) return null;
  const lines = text.split("\n");
  const start = lines.slice(0, where.line - 1).reduce((sum, line) => sum + line.length + 1, 0) + where.column - 1;
  const carets = (where.snippet.split("\n")[1]?.match(/\^/g) ?? ["^"]).length;
  return { start, end: Math.max(start + 1, Math.min(start + carets, text.length)) };
}
