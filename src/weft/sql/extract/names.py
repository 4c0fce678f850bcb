"""Which names of a script are PySpark's functions, and which are constants."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

FUNCTIONS = "pyspark.sql.functions"


@dataclass
class Names:
    modules: set[str] = field(default_factory=set)
    """Names of the module of functions, as `F`."""
    functions: dict[str, str] = field(default_factory=dict)
    """Functions by the name that the script gives them, as `spark_sum`."""
    constants: dict[str, object] = field(default_factory=dict)
    star: bool = False
    own: set[str] = field(default_factory=set)
    """Names that the script defines itself."""

    def learn(self, node: ast.stmt) -> None:
        """Record the names of an import."""
        if isinstance(node, ast.ImportFrom) and node.module in ("pyspark.sql", FUNCTIONS):
            for alias in node.names:
                if node.module == "pyspark.sql":
                    if alias.name == "functions":
                        self.modules.add(alias.asname or alias.name)
                elif alias.name == "*":
                    self.star = True
                else:
                    self.functions[alias.asname or alias.name] = alias.name
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == FUNCTIONS:
                    self.modules.add(alias.asname or alias.name)

    def function(self, called: ast.expr) -> str | None:
        """The name of the called PySpark function; None: it is no PySpark function."""
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) in self.modules:
            return called.attr
        if isinstance(called, ast.Name):
            unknown = called.id if self.star and called.id not in self.own else None
            return self.functions.get(called.id, unknown)
        return None

    def constant(self, node: ast.expr) -> object | None:
        """The value of a constant expression; None: it is not constant."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self.constants.get(name)
            case ast.JoinedStr(values=parts):
                texts = [self.constant(p.value if isinstance(p, ast.FormattedValue) else p) for p in parts]
                return None if any(text is None for text in texts) else "".join(map(str, texts))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                one, other = self.constant(left), self.constant(right)
                return one + other if isinstance(one, str) and isinstance(other, str) else None
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                number = self.constant(operand)
                return -number if isinstance(number, int | float) else None
        return None
