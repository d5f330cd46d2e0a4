"""Declare functions of the formula language: signature, one sentence of documentation, and an example that a test
runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from webapp import limits
from webapp.engine.formulas import types
from webapp.engine.formulas.calendar import day_of
from webapp.engine.formulas.nodes import Kernel, Node, as_text, check_length, elementwise
from webapp.engine.formulas.operators import as_condition, as_moment, as_number, wrong_type
from webapp.engine.formulas.types import FormulaError, Kind
from webapp.engine.formulas.uniqueness import UniquenessProof

if TYPE_CHECKING:
    from webapp.engine.formulas.compiler import FormulaBuilder

_PARAMETER = re.compile(r"(?P<name>\w+)(?P<optional> = [^,]+)?|(?P<more>\.\.\.)")


@dataclass(frozen=True, slots=True)
class Function:
    """One function, as the catalogue shows it and as formulas call it."""

    name: str
    family: str
    signature: str
    description: str
    example: str
    result: Any
    """The result of the example in row 1, as JSON."""
    build: Callable[[Call], Node]
    min_arguments: int
    max_arguments: int | None
    """Arguments: None is any number."""
    aliases: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The function as `/field-types` serves it."""
        return {
            "name": self.name, "family": self.family, "signature": self.signature, "description": self.description,
            "example": self.example, "result": self.result, "aliases": list(self.aliases),
        }  # fmt: skip


Build = Callable[["Call"], Node]


def function(
    signature: str, description: str, example: str, result: Any, aliases: tuple[str, ...] = ()
) -> Callable[[Build], Function]:
    """Declares a function. ``signature`` says how many arguments it takes: those with ``=`` may be left out, ``...``
    stands for any number more."""
    name, _, rest = signature.partition("(")
    found = list(_PARAMETER.finditer(rest.rstrip(")")))
    required = sum(1 for match in found if match["name"] and not match["optional"])
    maximum = None if any(match["more"] for match in found) else len(found)

    def declared(build: Build) -> Function:
        family = build.__module__.rpartition(".")[2]
        return Function(
            name, family, signature, description, example, result, build, required, maximum, aliases
        )

    return declared


class Call:
    """One call of a function while a formula is compiled: its arguments, checked when they are read."""

    __slots__ = ("args", "builder", "function", "position")

    def __init__(self, builder: FormulaBuilder, function: Function, args: list[Node], at: int) -> None:
        self.builder, self.function, self.args, self.position = builder, function, args, at
        argument_count = len(args)
        if argument_count < function.min_arguments or (
            function.max_arguments is not None and argument_count > function.max_arguments
        ):
            text = f"{function.name} does not accept {argument_count} arguments. Use {function.signature}."
            raise FormulaError("wrong_arguments", text, at, f"For example {function.example}.")

    def has(self, index: int) -> bool:
        """Whether the argument was given."""
        return index < len(self.args)

    def text(self, index: int) -> Node:
        """An argument as text; numbers, dates and truth values are spelled."""
        return as_text(self.args[index])

    def number(self, index: int) -> Node:
        """An argument that is a number."""
        return as_number(self.args[index])

    def integer(self, index: int) -> Node:
        """An argument that is a whole number."""
        node = self.number(index)
        if node.element_kind.places:
            raise wrong_type(node, "a whole number", "Use `int(...)` to remove the decimal places.")
        return node

    def condition(self, index: int) -> Node:
        """An argument that is a condition."""
        return as_condition(self.args[index])

    def moment(self, index: int) -> Node:
        """An argument that is a date or a point in time."""
        return as_moment(self.args[index])

    def day(self, index: int) -> Node:
        """An argument that is a date; a point in time counts as its day."""
        return day_of(self.moment(index))

    def list_argument(self, index: int) -> Node:
        """An argument that is a list of single values."""
        node = self.args[index]
        if node.kind.name != "list":
            text = f"{self.function.name} needs a list, not {node.kind.label}."
            raise FormulaError("wrong_type", text, node.position, f"For example {self.function.example}.")
        return node

    def fixed(self, index: int, expected: str) -> Any:
        """The value of an argument that must be written out in the formula."""
        node = self.args[index]
        if not node.is_constant or node.const is None:
            text = f"{self.function.name} needs {expected} as a literal here, not a value that differs from row to row."
            raise FormulaError("not_fixed", text, node.position, f"For example {self.function.example}.")
        return node

    def fixed_integer(self, index: int, low: int, high: int, default: int | None = None) -> int:
        """A whole number that is written out, from ``low`` to ``high``."""
        if not self.has(index) and default is not None:
            return default
        node = self.fixed(index, "a whole number")
        if node.kind.name != "integer" or not low <= node.const <= high:
            text = f"{self.function.name} needs a whole number from {low:,} to {high:,} here."
            raise FormulaError("out_of_range", text, node.position, f"For example {self.function.example}.")
        return node.const

    def fixed_text(self, index: int, default: str | None = None, *, empty: bool = False) -> str:
        """A text that is written out."""
        if not self.has(index) and default is not None:
            return default
        node = self.fixed(index, "a text")
        if node.kind.name != "text" or not (node.const or empty):
            text = (
                f"{self.function.name} needs a text here that is not empty."
                if not empty
                else "A text is required here."
            )
            raise FormulaError("wrong_type", text, node.position, f"For example {self.function.example}.")
        if len(node.const) > limits.MAX_PATTERN_CHARS:
            raise FormulaError("too_long", "This text is too long.", node.position)
        return node.const

    def apply(self, kind: Kind, kernel: Kernel, *nodes: Node, proof: UniquenessProof | None = None) -> Node:
        """``kernel`` over the arguments, row by row."""
        return elementwise(list(nodes), kind, kernel, self.position, proof)

    def apply_text(
        self, longest: int | None, kernel: Kernel, *nodes: Node, proof: UniquenessProof | None = None
    ) -> Node:
        """Return a text node with this maximum length."""
        check_length(longest, self.position)
        return self.apply(types.text(longest), kernel, *nodes, proof=proof)

    def error(self, index: int, code: str, message: str, hint: str = "") -> FormulaError:
        """Return the error of an argument, for the caller to raise."""
        return FormulaError(
            code, message, self.args[index].position, hint or f"For example {self.function.example}."
        )
