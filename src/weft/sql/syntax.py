"""Spark's expression grammar over tokens: `read` makes the tree of `syntax_tree`.

The tree is for finding aggregates, keys and conjuncts. What weft passes on to Spark is the text of the tokens, so a
construct that only Spark interprets may stay a node without parts.
"""

from __future__ import annotations

from dataclasses import replace

from weft.sql.syntax_tree import Node, TokenCursor, Unreadable
from weft.sql.tokens import Token, Tokens, closing

OR, AND, NOT, PREDICATE, COMPARISON, SIGN, POSTFIX = 1, 2, 3, 4, 5, 12, 13
_BINARY: dict[str, tuple[int, str]] = {
    "->": (0, "->"), "OR": (OR, "or"), "AND": (AND, "and"),
    "=": (COMPARISON, "eq"), "==": (COMPARISON, "eq"), "!=": (COMPARISON, "ne"), "<>": (COMPARISON, "ne"),
    "<": (COMPARISON, "lt"), "<=": (COMPARISON, "le"), "!>": (COMPARISON, "le"), ">": (COMPARISON, "gt"),
    ">=": (COMPARISON, "ge"), "!<": (COMPARISON, "ge"), "<=>": (COMPARISON, "null_safe_eq"),
    "|": (6, "|"), "^": (7, "^"), "&": (8, "&"), "<<": (9, "<<"), ">>": (9, ">>"), ">>>": (9, ">>>"),
    "+": (10, "add"), "-": (10, "sub"), "||": (10, "||"),
    "*": (11, "mul"), "/": (11, "div"), "%": (11, "mod"), "DIV": (11, "int_div"),
}  # fmt: skip
_PREDICATES = frozenset({"IS", "BETWEEN", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP"})


def read(tokens: Tokens) -> Node:
    """The expression that is all of these tokens."""
    reader = _Reader(tokens)
    node = reader.expression()
    if reader.at < len(tokens):
        raise Unreadable(tokens[reader.at])
    return node


def read_item(tokens: Tokens) -> tuple[Node, Token | None]:
    """A column of a SELECT list: its expression, and its alias."""
    reader = _Reader(tokens)
    node = reader.expression()
    if reader.at < len(tokens) and tokens[reader.at].upper == "AS":
        reader.at += 1
    alias = None
    if reader.at < len(tokens) and tokens[reader.at].is_name:
        alias = tokens[reader.at]
        reader.at += 1
    if reader.at < len(tokens) or tokens[-1].upper == "AS":
        raise Unreadable(tokens[min(reader.at, len(tokens) - 1)])
    return node, alias


class _Reader(TokenCursor):
    """Precedence climbing: `expression(least)` reads operators with a precedence of at least `least`."""

    def expression(self, least: int = 0) -> Node:
        begin = self.at
        node = self.prefix()
        while self.at < len(self.tokens):
            word = self.peek()
            if word in _BINARY and least <= _BINARY[word][0]:
                power, name = _BINARY[word]
                self.at += 1
                right = self.expression(power + 1)
                node = Node("op", self.since(begin), name, (node, right))
            elif least <= PREDICATE and (word in _PREDICATES or (word == "NOT" and self.peek(1) in _PREDICATES)):
                node = self.predicate(begin, node)
            elif least <= POSTFIX and word == "COLLATE":
                self.at += 2
                node = Node("op", self.since(begin), "collate", (node,))
            else:
                break
        return node

    def prefix(self) -> Node:
        begin, word = self.at, self.peek()
        if word in ("NOT", "!"):
            self.at += 1
            return self.op(begin, "not", self.expression(NOT))
        if word in ("-", "+", "~"):
            self.at += 1
            inner = self.expression(SIGN)
            if inner.kind == "literal" and word != "~":
                return replace(inner, tokens=self.since(begin))
            return self.op(begin, {"-": "neg", "+": "pos", "~": "~"}[word], inner)
        return self.postfix(begin, self.primary())

    def op(self, begin: int, name: str, *args: Node) -> Node:
        return Node("op", self.since(begin), name, args)

    def predicate(self, begin: int, left: Node) -> Node:
        negated = self.take("NOT")
        word = self.peek()
        self.at += 1
        if word == "IS":
            return self.is_predicate(begin, left)
        if word == "BETWEEN":
            low = self.expression(COMPARISON)
            self.need("AND")
            node = self.op(begin, "between", left, low, self.expression(COMPARISON))
        elif word == "IN":
            self.need("(")
            node = self.op(begin, "in", left, *self.list_until_paren())
        else:
            if self.peek() in ("ANY", "SOME", "ALL") and self.peek(1) == "(":
                self.at += 2
                node = self.op(begin, word.lower(), left, *self.list_until_paren())
            else:
                node = self.op(begin, word.lower(), left, self.expression(COMPARISON))
            if self.take("ESCAPE"):
                self.at += 1
            node = replace(node, tokens=self.since(begin))
        return self.op(begin, "not", node) if negated else node

    def is_predicate(self, begin: int, left: Node) -> Node:
        negated = self.take("NOT")
        if self.take("NULL") or self.take("UNKNOWN"):
            return self.op(begin, "is_not_null" if negated else "is_null", left)
        if self.take("DISTINCT", "FROM"):
            node = self.op(begin, "null_safe_eq", left, self.expression(COMPARISON))
            negated = not negated
        elif self.peek() in ("TRUE", "FALSE"):
            self.at += 1
            node = self.op(begin, "null_safe_eq", left, Node("literal", self.since(self.at - 1)))
        else:
            raise Unreadable(self.token())
        return self.op(begin, "not", node) if negated else node

    def list_until_paren(self) -> list[Node]:
        nodes = [self.expression()]
        while self.take(","):
            nodes.append(self.expression())
        self.need(")")
        return nodes

    def postfix(self, begin: int, node: Node) -> Node:
        while True:
            if self.take("::"):
                kind = self.at
                self.type_name()
                node = Node("cast", self.since(begin), name="::", args=(node, Node("opaque", self.since(kind))))
            elif self.peek() == "[":
                self.at = closing(self.tokens, self.at) + 1
                node = Node("op", self.since(begin), "[]", (node,))
            elif self.peek() == ":" and self.at + 1 < len(self.tokens):
                self.at += 2
                node = Node("op", self.since(begin), ":", (node,))
            elif self.peek() == "." and self.at + 1 < len(self.tokens):
                self.at += 2
                node = Node("field", self.since(begin), self.tokens[self.at - 1].name, (node,))
            else:
                return node

    def type_name(self) -> None:
        if not self.token().is_name:
            raise Unreadable(self.token())
        self.at += 1
        if self.peek() == "(":
            self.at = closing(self.tokens, self.at) + 1
        elif self.peek() == "<":
            depth = 0
            while True:
                depth += {"<": 1, ">": -1, ">>": -2, ">>>": -3}.get(self.token().upper, 0)
                self.at += 1
                if depth <= 0:
                    return

    def primary(self) -> Node:
        begin, token = self.at, self.token()
        if token.kind == "number":
            self.at += 1
            return Node("literal", self.since(begin), "number")
        if token.kind == "string":
            return self.strings(begin)
        if token.text == "(":
            return self.parenthesis(begin)
        if token.text == "*":
            self.at += 1
            return Node("star", self.since(begin))
        if not token.is_name:
            raise Unreadable(token)
        follower = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if token.kind == "word":
            if token.upper in ("TRUE", "FALSE", "NULL"):
                self.at += 1
                return Node("literal", self.since(begin), token.name)
            if token.upper == "CASE":
                return self.case(begin)
            if token.upper == "INTERVAL" and follower and follower.kind in ("number", "string", "op"):
                interval = self.interval(begin)
                if interval:
                    return interval
            elif follower and follower.kind == "string":
                self.at += 1
                return self.strings(begin, typed=True)
            if token.upper == "CAST" and follower and follower.text == "(":
                return self.cast(begin)
        return self.column_or_call(begin)

    def strings(self, begin: int, typed: bool = False) -> Node:
        while self.at < len(self.tokens) and self.tokens[self.at].kind == "string":
            self.at += 1
        return Node("literal", self.since(begin), "typed" if typed else "string")

    def interval(self, begin: int) -> Node | None:
        self.at += 1
        while True:
            if self.peek() in ("+", "-"):
                self.at += 1
            if self.at + 1 >= len(self.tokens) or self.tokens[self.at].kind not in ("number", "string"):
                break
            if self.tokens[self.at + 1].kind != "word":
                break
            self.at += 2
            if self.take("TO"):
                self.at += 1
        if self.at <= begin + 2:
            self.at = begin
            return None
        if self.tokens[self.at - 1].text in ("+", "-"):
            self.at -= 1
        return Node("literal", self.since(begin), "typed")

    def parenthesis(self, begin: int) -> Node:
        self.at += 1
        nodes = [self.expression()]
        while self.take(","):
            nodes.append(self.expression())
        self.need(")")
        return Node("paren" if len(nodes) == 1 else "opaque", self.since(begin), "struct", tuple(nodes))

    def case(self, begin: int) -> Node:
        """Parts: WHEN and THEN in turn, then ELSE. If there is a subject, it comes first and the name is `subject`."""
        self.at += 1
        parts = [] if self.peek() == "WHEN" else [self.expression()]
        name = "subject" if parts else ""
        while self.take("WHEN"):
            parts.append(self.expression())
            self.need("THEN")
            parts.append(self.expression())
        if self.take("ELSE"):
            parts.append(self.expression())
        self.need("END")
        return Node("case", self.since(begin), name, tuple(parts))

    def cast(self, begin: int) -> Node:
        self.at += 2
        node = self.expression()
        self.need("AS")
        kind = self.at
        self.type_name()
        parts = (node, Node("opaque", self.since(kind)))
        self.need(")")
        return Node("cast", self.since(begin), "cast", parts)

    def column_or_call(self, begin: int) -> Node:
        self.at += 1
        while self.peek() == "." and self.at + 1 < len(self.tokens) and self.tokens[self.at + 1].is_name:
            self.at += 2
        if self.peek() == "." and self.peek(1) == "*":
            self.at += 2
            return Node("star", self.since(begin))
        if self.peek() == "(":
            return self.call(begin)
        return Node("column", self.since(begin))

    def call(self, begin: int) -> Node:
        name = ".".join(t.name for t in self.since(begin) if t.is_name)
        opening = self.at
        self.at += 1
        distinct = self.take("DISTINCT")
        if not distinct and self.peek() == "ALL" and self.peek(1) not in (")", ",", "."):
            self.at += 1
        args: tuple[Node, ...] = ()
        nulls, kind = "", "call"
        try:
            if not self.take(")"):
                args, nulls = self.arguments()
        except Unreadable:
            # Special syntax, such as extract(hour FROM ts), is left to Spark.
            self.at, kind = closing(self.tokens, opening) + 1, "opaque"
            if self.at > len(self.tokens):
                raise
        within = self.brackets("WITHIN", "GROUP")
        condition = self.brackets("FILTER")[1:]  # without WHERE
        for mode in ("IGNORE", "RESPECT"):
            if self.take(mode, "NULLS"):
                nulls = mode
        return Node(kind, self.since(begin), name, args, distinct, nulls, condition, within)

    def arguments(self) -> tuple[tuple[Node, ...], str]:
        nodes, nulls = [self.expression()], ""
        for mode in ("IGNORE", "RESPECT"):
            if self.take(mode, "NULLS"):
                nulls = mode
        while self.take(","):
            nodes.append(self.expression())
        self.need(")")
        return tuple(nodes), nulls
