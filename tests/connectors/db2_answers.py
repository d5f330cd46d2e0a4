"""What the tests of Db2 without a server share: a connection that answers as documented, and a table."""

from __future__ import annotations

from webapp.connectors.db2.errors import convert_error
from webapp.connectors.schema import Column

ID = Column("id", "integer", "INTEGER", nullable=False, bits=32, key=True, unique=True)
NAME = Column("name", "text", "VARCHAR(5)", max_length=5)
PREFIX = "[IBM][CLI Driver][DB2/LINUXX8664] "


def said(code: int, state: str, text: str) -> str:
    """As the driver words it."""
    return f"{PREFIX}SQL{-code:04d}N  {text}  SQLSTATE={state} SQLCODE={code}"


class Link:
    """Replacement for `Db2Connection`: records statements, and answers with the first rule whose words are in the
    statement."""

    server = ("DB2/LINUXX8664", "11.05.0900")

    def __init__(self, *rules):
        self.told, self.rules = [], rules

    def _answer(self, text):
        self.told.append(text)
        for words, answer in self.rules:
            if words in text:
                answer = answer(text) if callable(answer) else answer
                if isinstance(answer, str):
                    raise convert_error(answer)
                if answer is not None:
                    return answer
        return None

    def run(self, text):
        self._answer(text)
        return 0

    def query(self, text, values=(), limit=None, seconds=None):
        return [], self._answer(text) or []

    def begin(self):
        self.told.append("BEGIN")

    def commit(self):
        self.told.append("COMMIT")

    def rollback(self):
        self.told.append("ROLLBACK")

    def close(self):
        self.told.append("CLOSE")
