"""Values that an API answers: a path is rendered for each row, asked once, and a JSONPath takes the value out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import quote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field

from webapp import limits
from webapp.engine import budget, json_paths, picks, placeholders, postprocess, text
from webapp.engine.fields.outside import Fetched, Outside
from webapp.engine.outside import Answer, Question
from webapp.engine.placeholders import Hole, Pattern

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_VALUE, _BLANK, _DEFAULT = 0, 1, 2
_REFRESH = "What was answered is kept: once the target has it, refresh what was fetched from the connection."


def _path(path: str) -> str:
    if re.match(r"[A-Za-z][\w+.-]*:|//", path):
        raise ValueError("a path is resolved against the connection's base URL and names no host of its own")
    if not path.isprintable() or "\\" in path or "#" in path:
        raise ValueError("a path holds no line breaks, no backslashes and no #")
    if ".." in path.partition("?")[0].split("/"):
        raise ValueError("a path does not lead upwards")
    return path


def _json_path(extract: str) -> str:
    json_paths.read(extract)
    return extract


class ApiResponse(Outside):
    """A value out of what an API answers."""

    name = "api_response"
    label = "API value"
    description = "A value that a REST API answers; with {{field}} in its path, asked once for each path."
    aliases = (
        "api",
        "api value",
        "api call",
        "rest",
        "rest call",
        "rest response",
        "http response",
        "http request",
    )
    example = "example"

    class Options(Fetched):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The REST connection to call.",
            json_schema_extra=picks.connection("fetch"),
        )  # fmt: skip
        path: Annotated[str, AfterValidator(_path)] = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="The path on the connection, with a query where it needs one. The value for {{field}} is "
            "percent-encoded.",
            json_schema_extra=picks.PATTERN,
        )  # fmt: skip
        extract: Annotated[str, AfterValidator(_json_path)] = Field(
            "$", min_length=1, max_length=limits.JSON_PATH_CHARS,
            description="JSONPath of the value in the answer: the first match counts. The whole answer, if not said.",
        )  # fmt: skip
        on_error: Literal["error", "blank", "default"] = Field(
            "error",
            description="What to do where the path is answered 404 or the like, or by what is not JSON.",
        )
        on_empty: Literal["error", "blank", "default"] = Field(
            "error", description="What to do where extract finds nothing in the answer."
        )
        default: str | int | float | bool | None = Field(
            None, description="The value where on_error or on_empty is default and comes to pass."
        )

        @property
        def falls_back(self) -> bool:
            return "default" in (self.on_empty, self.on_error)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._quiet = self.redacted
        self._answer: Answer | None = None
        pattern = self._read(compiler)
        if pattern is None:
            return
        self._pattern = pattern
        question = self._question()
        self._key = question.key
        self._answer = answer = compiler.ask(field, question, keyed=bool(self.needs))
        if answer is not None:
            self._take(answer, compiler)

    def _read(self, compiler: Compiler) -> Pattern | None:
        """The path, whose fields are then `needs`; None after a fault."""
        field = self.field
        try:
            pattern = placeholders.parse(self.options.path)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.path", "bad_placeholder", str(error), where)
            return None
        before = len(compiler.faults)
        self.needs = tuple(dict.fromkeys(hole.name for hole in pattern.holes))
        for name in self.needs:
            column = compiler.require(field, "options.path", name)
            self._quiet |= column is None or column.spec.common.sensitive
            if column is not None and pa.types.is_nested(column.dtype):
                told = f'"{name}" holds objects or arrays, which no path takes.'
                compiler.fault(field, "options.path", "wrong_type", told, "Name a field with single values.")
        if len(compiler.faults) > before:
            return None
        return pattern if self.options.path.startswith("/") else Pattern(("/", *pattern.parts))

    def _question(self) -> Question:
        options = self.options
        fixed = () if self.needs else ("".join(map(str, self._pattern.parts)),)
        of = (("bears", options.on_error != "error"), ("path", options.path), ("quiet", self._quiet))
        return Question(options.connection_id, "http", (("of", of),), fixed)

    # --- Rows ---------------------------------------------------------------------------------------------------

    def fill(self, cells: Cells) -> pa.Array:
        answer = self._answer
        if not self.needs:
            return self.stood_in(cells.n) if answer is None else self._of(np.zeros(cells.n, np.int64))
        paths = self._paths(cells)
        if answer is None:
            if cells.env.recorder is not None:
                asked = paths.drop_null()
                cells.env.recorder.note(self._key, self.field.path, asked, [asked])
            return postprocess.blanked(self.stood_in(cells.n), _nulls(paths))
        place = pc.index_in(paths, value_set=answer.keys, skip_nulls=True)
        unknown = _nulls(place)  # blank in its path, or asked by nobody: a look that calls nobody
        if unknown.all():
            return pa.nulls(cells.n, self.dtype)
        made = self._of(pc.fill_null(place, 0).to_numpy().astype(np.int64))
        return postprocess.blanked(made, unknown) if unknown.any() else made

    def _of(self, place: np.ndarray) -> pa.Array:
        there = self._states[place] != _DEFAULT
        return self.picked(place, None if there.all() else there)

    def _paths(self, cells: Cells) -> pa.Array:
        """``string[n]``: the path of each row; null where a value in it is blank, for which nobody is asked."""
        pieces = [part if isinstance(part, str) else _encoded(part, cells) for part in self._pattern.parts]
        return pieces[0] if len(pieces) == 1 else budget.joined(pieces, cells.n)

    # --- Answers ------------------------------------------------------------------------------------------------

    def _take(self, answer: Answer, compiler: Compiler) -> None:
        """Makes the values of what was answered: the first match of each body."""
        values, empty, failed = self._found(answer, compiler)
        states = np.full(len(values), _VALUE, np.int8)
        for places, what in ((empty, self.options.on_empty), (failed, self.options.on_error)):
            states[places] = _DEFAULT if what == "default" and self.options.default is not None else _BLANK
        self._states = states
        column, nested = self._column(values, compiler)
        if column is None:
            return
        self.use(
            Answer(pa.table({"value": column}), answer.snapshot, answer.keys, answer.starts), None, compiler
        )
        if nested and not self.redacted and pa.types.is_string(self.dtype):
            self.json_text = True
            if _DEFAULT in states and not _is_json(self.options.default):
                told = "The values are objects or arrays, and the default is no JSON."
                compiler.fault(
                    self.field, "options.default", "wrong_type", told, 'Write JSON, such as "{}" or "[]".'
                )

    def _found(self, answer: Answer, compiler: Compiler) -> tuple[list[Any], list[int], list[int]]:
        """The values, and the places of those where nothing was found, and of those that could not be read."""
        path = json_paths.read(self.options.extract)
        values: list[Any] = []
        empty: list[int] = []
        failed: list[int] = []
        table = answer.table
        told = list(zip(table.column("body").to_pylist(), table.column("trouble").to_pylist(), strict=True))
        for place, (body, trouble) in enumerate(told):
            there, value = False, None
            try:
                there, value = (
                    json_paths.first(path, orjson.loads(body)) if body is not None else (False, None)
                )
            except ValueError:
                failed.append(place)
            else:
                if not there:
                    (failed if trouble else empty).append(place)
            values.append(value)
        if failed and self.options.on_error == "error":
            why = told[failed[0]][1] or "an answer that extract does not fit"
            text_ = f"The target answered {why}{self._such(answer, failed, len(told))}."
            compiler.fault(
                self.field, "", "bad_answer", text_, f"Write on_error: blank, or default. {_REFRESH}"
            )
        if empty:
            where = self._such(answer, empty, len(told))
            self.empty(compiler, f"extract ({self.options.extract}) finds nothing in the answer{where}.")
        return values, empty, failed

    def _such(self, answer: Answer, places: list[int], count: int) -> str:
        if answer.keys is None:
            return ""
        shown = (
            "" if self._quiet else f", such as {answer.keys[places[0]].as_py()[: limits.FETCHED_SAID_CHARS]}"
        )
        return f" to {len(places):,} of {count:,} paths{shown}"

    def _column(self, values: Sequence[Any], compiler: Compiler) -> tuple[pa.Array | None, bool]:
        """The values as one Arrow array, and whether they are JSON documents; None after a fault."""
        sorts = {_sort(value) for value in values if value is not None}
        if not sorts:
            return pa.nulls(len(values), _natural(self.options.default)), False
        if self.options.kind is not None or sorts == {"objects or arrays"}:
            return self._spelled(values), sorts == {"objects or arrays"}
        if len(sorts) > 1:
            told = f"The answers hold values of different kinds: {', '.join(sorted(sorts))}."
            compiler.fault(
                self.field, "options.kind", "wrong_type", told, "Say what they are taken as: text fits all."
            )
            return None, False
        if any(isinstance(value, float) for value in values):
            values = [None if value is None else float(value) for value in values]
        try:
            return pa.array(values), False
        except (OverflowError, pa.ArrowException):  # integers beyond 64 bits
            return self._spelled(values), False

    def _spelled(self, values: Sequence[Any]) -> pa.Array:
        """As texts; points in time with a zone as such, where that kind is asked for."""
        made = pa.array([_text(value) for value in values], pa.string())
        if self.options.kind == "datetime":
            for zone in (None, "UTC"):
                try:
                    return made.cast(pa.timestamp("us", zone))
                except pa.ArrowException:
                    continue
        return made

    def unique_hint(self) -> str:
        return "What is fetched may repeat."


def _encoded(hole: Hole, cells: Cells) -> pa.Array:
    """``string[n]``: a value of each row, percent-encoded; null where it is blank."""
    texts = text.decode(Pattern((hole,)).fill(cells.column, cells.n))
    blank = pc.or_(pc.is_null(text.decode(cells.column(hole.name))), pc.equal(texts, ""))
    coded = pc.if_else(blank, pa.scalar(None, pa.string()), texts).dictionary_encode()
    quoted = pa.array([quote(one, safe="") for one in coded.dictionary.to_pylist()], pa.string())
    return quoted.take(coded.indices)


def _nulls(column: pa.Array) -> np.ndarray:
    return column.is_null().to_numpy(zero_copy_only=False)


def _sort(value: Any) -> str:
    if isinstance(value, bool):
        return "truth values"
    if isinstance(value, int | float):
        return "numbers"
    return "texts" if isinstance(value, str) else "objects or arrays"


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _natural(default: Any) -> pa.DataType:
    return pa.array([default]).type if default is not None else pa.null()


def _is_json(default: Any) -> bool:
    try:
        orjson.loads(str(default))
    except orjson.JSONDecodeError:
        return False
    return isinstance(default, str)
