"""Statements that must stay first in a cell or script."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def length_of_head(body: Sequence[ast.stmt]) -> int:
    """Count the statements that must stay at the top: a docstring and imports from __future__."""
    count = 0
    match body:
        case [ast.Expr(ast.Constant(str())), _, *_]:
            count = 1
    while count < len(body) and is_future_import(body[count]):
        count += 1
    return count


def is_future_import(node: ast.stmt) -> bool:
    """Whether a statement imports from __future__."""
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"
