"""The errors of formulas, with their positions."""

from __future__ import annotations


class FormulaError(ValueError):
    """A formula that cannot be parsed or evaluated. ``position`` counts characters from 1."""

    def __init__(self, code: str, message: str, position: int = 1, hint: str | None = None) -> None:
        self.code, self.message, self.position, self.hint = code, message, position, hint
        super().__init__(message)


class FormulaErrors(ValueError):
    """Everything that is wrong with one formula; ``errors`` is never empty."""

    def __init__(self, errors: list[FormulaError]) -> None:
        self.errors = errors
        super().__init__("; ".join(error.message for error in errors))


class ValueFault(ArithmeticError):
    """A value of some row that cannot be carried further: too large a number, too long a text."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        self.code, self.message, self.hint = code, message, hint
        super().__init__(message)
