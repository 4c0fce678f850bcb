"""Post-aggregation expressions: a tree over calls, keys and the window, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from weft.model import Call, Expression
from weft.sql.calls import is_aggregate, read_call
from weft.sql.canonical import canonical
from weft.sql.functions import CASTS, SCALARS
from weft.sql.refuse import Source
from weft.sql.syntax_tree import Node
from weft.sql.window import Windowing, read_window

_SIGNS = {
    "add": "+", "sub": "-", "mul": "*", "div": "/", "int_div": "DIV", "mod": "%", "and": "AND", "or": "OR",
    "eq": "=", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "null_safe_eq": "<=>",
}  # fmt: skip
_LEAVES = frozenset({"call", "key", "window", "window_start", "window_end", "literal"})


@dataclass
class Lowering:
    """Turns nodes into expressions; collects the distinct calls, and the edits that make the text Spark SQL."""

    source: Source
    keys: tuple[str, ...]
    folded: Mapping[str, int]
    windowing: Windowing
    cql: bool
    calls: list[Call] = field(default_factory=list)
    aliases: dict[str, Expression] = field(default_factory=dict)
    edits: list[tuple[int, int, str]] = field(default_factory=list)

    def lower(self, node: Node) -> Expression:
        key = self.key(node)
        if key is not None:
            return Expression("key", canonical(node.tokens), value=key)
        if node.kind == "paren":
            inner = self.lower(node.args[0])
            return replace(inner, sql=f"({inner.sql})")
        if node.kind == "literal":
            sql = canonical(node.tokens)
            return Expression("literal", sql, value=sql)
        if is_aggregate(node):
            return self.call(node, read_call(self.source, node))
        if node.kind == "column":
            return self.column(node)
        if node.kind == "field":
            return self.window_part(node)
        if node.kind == "call" and node.name == "window":
            return self.window_call(node)
        if node.kind == "call" and node.name == "range" and self.cql and len(node.args) == 1:
            return self.spread(node)
        if node.kind == "cast":
            return self.cast(node, node.args[0], canonical(node.args[1].tokens))
        if node.kind == "case":
            return self.case(node)
        if node.kind == "call" and node.name in CASTS and len(node.args) == 1:
            return self.cast(node, node.args[0], node.name.upper())
        if node.kind == "call" and node.name in SCALARS:
            op, least, most = SCALARS[node.name]
            if least <= len(node.args) <= most:
                args = tuple(self.lower(a) for a in node.args)
                return Expression(op, f"{node.name}({', '.join(a.sql for a in args)})", args)
        if node.kind == "op":
            operation = self.operation(node)
            if operation:
                return operation
        return self.constant_or_refuse(node)

    def key(self, node: Node) -> int | None:
        text = canonical(node.tokens)
        if text in self.keys:
            return self.keys.index(text)
        return self.folded.get(canonical(node.tokens, fold=True))

    def call(self, node: Node, call: Call) -> Expression:
        if call not in self.calls:
            self.calls.append(call)
        return Expression("call", canonical(node.tokens), value=self.calls.index(call))

    def column(self, node: Node) -> Expression:
        names = [t.name for t in node.path]
        if names == ["window"]:
            return Expression("window", "window")
        if names in (["window", "start"], ["window", "end"]):
            return Expression(f"window_{names[1]}", f"window.{names[1]}")
        alias = self.aliases.get(names[0])
        if alias is not None:
            if len(names) == 1:
                return alias if alias.op in _LEAVES else replace(alias, sql=f"({alias.sql})")
            if alias.op == "window" and names[1:] in (["start"], ["end"]):
                return Expression(f"window_{names[1]}", f"window.{names[1]}")
        text = canonical(node.tokens)
        raise self.source.refuse(
            node.start, node.end, f"{text} is neither grouped nor aggregated, so a window has no single value of it.",
            f"Add {text} to GROUP BY, or aggregate it, as in max({text}).",
        )  # fmt: skip

    def window_part(self, node: Node) -> Expression:
        inside = node.args[0]
        while inside.kind == "paren":
            inside = inside.args[0]
        if node.name in ("start", "end") and inside.kind == "call" and inside.name == "window":
            self.window_call(inside)
            return Expression(f"window_{node.name}", f"window.{node.name}")
        return self.constant_or_refuse(node)

    def window_call(self, node: Node) -> Expression:
        window = read_window(self.source, node)
        if (window.window, window.event_time) != (self.windowing.window, self.windowing.event_time):
            reason = "a query has one window, and this is not the one that it groups by."
            raise self.source.refuse(node.start, node.end, reason, "Write window, or a query for each window.")
        return Expression("window", "window")

    def spread(self, node: Node) -> Expression:
        """CQL's range(x): max(x) - min(x). Spark has no such aggregate, so the text is edited."""
        ends = [replace(node, name=name) for name in ("max", "min")]
        calls = [read_call(self.source, n) for n in ends]
        greatest, smallest = (replace(self.call(node, c), sql=f"{c.function}{self.tail(node)}") for c in calls)
        sql = f"({greatest.sql} - {smallest.sql})"
        self.edits.append((node.start, node.end, sql))
        return Expression("sub", sql, (greatest, smallest))

    def tail(self, node: Node) -> str:
        return canonical(node.tokens[1:])

    def cast(self, node: Node, inside: Node, kind: str) -> Expression:
        arg = self.lower(inside)
        return Expression("cast", f"CAST({arg.sql} AS {kind})", (arg,), kind)

    def case(self, node: Node) -> Expression:
        parts = [self.lower(a) for a in node.args]
        subject = parts.pop(0) if node.name == "subject" else None
        words = ["CASE" if subject is None else f"CASE {subject.sql}"]
        args: list[Expression] = []
        for i in range(0, len(parts) - 1, 2):
            when, then = parts[i], parts[i + 1]
            words.append(f"WHEN {when.sql} THEN {then.sql}")
            if subject is not None:
                when = Expression("eq", f"({subject.sql}) = ({when.sql})", (subject, when))
            args += [when, then]
        if len(parts) % 2:
            words.append(f"ELSE {parts[-1].sql}")
            args.append(parts[-1])
        return Expression("case", " ".join([*words, "END"]), tuple(args))

    def operation(self, node: Node) -> Expression | None:
        if node.name in _SIGNS:
            left, right = (self.lower(a) for a in node.args)
            return _infix(node.name, left, right)
        if node.name in ("neg", "pos", "not", "is_null", "is_not_null"):
            arg = self.lower(node.args[0])
            if node.name == "pos":
                return arg
            if node.name == "neg" and arg.sql.startswith("-"):
                arg = replace(arg, sql=f"({arg.sql})")  # two signs together would begin a comment
            form = {"neg": "-{}", "not": "NOT {}", "is_null": "{} IS NULL", "is_not_null": "{} IS NOT NULL"}[node.name]
            # NOT BETWEEN and NOT IN have the precedence of BETWEEN and IN.
            sql = form.format(f"({arg.sql})" if node.name == "not" and arg.op in ("and", "or") else arg.sql)
            return Expression(node.name, sql, (arg,))
        if node.name == "between":
            subject, low, high = (self.lower(a) for a in node.args)
            parts = (_infix("ge", subject, low), _infix("le", subject, high))
            return Expression("and", f"{subject.sql} BETWEEN {low.sql} AND {high.sql}", parts)
        if node.name == "in":
            subject, *values = (self.lower(a) for a in node.args)
            matches = _infix("eq", subject, values[0])
            for value in values[1:]:
                matches = _infix("or", matches, _infix("eq", subject, value))
            return replace(matches, sql=f"{subject.sql} IN ({', '.join(v.sql for v in values)})")
        return None

    def constant_or_refuse(self, node: Node) -> Expression:
        parts = list(node.walk())
        leaves = [n for n in parts if not n.args]
        if all(n.kind == "literal" or (n.kind == "call" and not is_aggregate(n)) for n in leaves):
            sql = canonical(node.tokens)
            return Expression("literal", sql, value=sql)
        if node.kind == "star":
            reason = "* stands for every column, and an answer has only groups, the window and aggregates."
            raise self.source.refuse(node.start, node.end, reason, "Name the columns of the answer.")
        used = [canonical(n.tokens) for n in parts if n is not node and self.can_be_selected(n)]
        what = f"{node.name}()" if node.kind in ("call", "opaque") and node.name != "struct" else canonical(node.tokens)
        if used:
            reason = f"weft does not compute {what} over aggregates and group keys."
            way_out = f"Select {', '.join(dict.fromkeys(used))} and apply it to the answers."
        elif any(n.kind == "column" and n.path[0].name == "window" for n in parts):
            reason = f"weft does not compute {what} over the window."
            way_out = "Select window.start and window.end and apply it to the answers."
        else:
            text = canonical(node.tokens)
            reason = f"{text} is neither grouped nor aggregated, so a window has no single value of it."
            way_out = f"Add {text} to GROUP BY, or aggregate it, as in max({text})."
        raise self.source.refuse(node.start, node.end, reason, way_out)

    def can_be_selected(self, node: Node) -> bool:
        if node.kind == "column" and node.path[0].name in self.aliases:
            return True
        return is_aggregate(node) or self.key(node) is not None


def _infix(op: str, left: Expression, right: Expression) -> Expression:
    return Expression(op, f"{left.sql} {_SIGNS[op]} {right.sql}", (left, right))
