"""External values: results of queries, requests and models, and columns of workspace files.

They use answers that the caller has supplied; see ``engine/external_values.py``. If there is no answer yet, every row
has a placeholder value of the field's kind. Prompts and paths are rendered for each row and requested once; a JSONPath
selects the value in a response. A foreign key draws from the keys that exist in a table of a connection.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol, Self
from urllib.parse import quote

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import AfterValidator, Field, model_validator

from webapp import limits
from webapp.engine import budget, external_values, form_hints, json_paths, placeholders, postprocess, text
from webapp.engine import random as engine_random
from webapp.engine.external_values import ExternalQuery, ExternalResponse, Kind
from webapp.engine.placeholders import Placeholder, PlaceholderText
from webapp.engine.relations import EXISTING
from webapp.engine.types.base import FieldType, GroupKind, OptionsModel, dictionary_array
from webapp.errors import did_you_mean

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.random import RandomStream
    from webapp.engine.spec import FieldSpec


ANSWER = "answer"
REDACTED = "[redacted]"
_MAX_POOL = 65_536  # a pool is escaped whole, so a larger one is not shared by the blocks


class FetchOptions(OptionsModel):
    """The options that all types have for missing responses."""

    on_empty: Literal["error", "blank", "default"] = Field(
        "error", description="What to do if the query returns no rows."
    )
    default: str | int | float | bool | None = Field(
        None, description="Value if the query returns no rows and on_empty is default."
    )
    kind: Kind | None = Field(None, description="Data type of the values. Default: the type in the source.")
    decimals: int = Field(2, ge=0, le=limits.MAX_DECIMALS, description="Decimal places, if kind is decimal.")

    @property
    def falls_back(self) -> bool:
        """Return whether the default value may be needed."""
        return self.on_empty == "default"


class ExternalOptions(Protocol):
    """The options of a type that `ExternalColumn` reads."""

    @property
    def on_empty(self) -> str: ...
    @property
    def default(self) -> str | int | float | bool | None: ...
    @property
    def kind(self) -> Kind | None: ...
    @property
    def decimals(self) -> int: ...
    @property
    def falls_back(self) -> bool: ...


class ExternalColumn(FieldType):
    """A column from a response: ``use_response`` prepares it, `select_values` returns values by their number."""

    category = "external"
    checks_memory_budget = True
    _kind: Kind = "text"

    def __init__(self, field: FieldSpec, options: ExternalOptions, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._external_options = options
        self.redacted = field.common.sensitive
        self._default: pa.Array | None = None
        self._pool = external_values.placeholder_values(options.kind or self._kind, options.decimals)
        self.dtype = self._pool.type
        masking = field.common.masking
        if masking is not None and masking.strategy != "redact":
            text = f"Values of this type are masked by redacting them; {masking.strategy} is not available for them."
            compiler.fault(
                field, "masking", "not_available", text, 'Use {"strategy": "redact"}, or remove masking.'
            )
        if not options.falls_back and options.default is not None:
            text = f"default is not used if on_empty is {options.on_empty}."
            compiler.fault(
                field, "options.default", "contradiction", text, "Set on_empty: default, or remove default."
            )

    def use_response(self, answer: ExternalResponse, name: str | None, compiler: Compiler) -> None:
        """Use column ``name`` (None: the first) of an answer as the values."""
        options, columns = self._external_options, answer.table.column_names
        if name is not None and name not in columns:
            text = f'The result has no column "{name}". Its columns: {", ".join(columns)}.'
            compiler.fault(self.field, "options.column", "unknown_column", text, did_you_mean(name, columns))
            return
        has_no_keys = answer.keys is None
        column = answer.table.column(name) if name is not None else answer.table.column(0)
        try:
            values = external_values.convert_column(column, options.kind, options.decimals, has_no_keys)
        except external_values.ValueConversionError as error:
            reason = "the value is sensitive and not shown" if self.redacted else str(error)
            text = f"A value cannot be converted to {options.kind}: {reason}"
            compiler.fault(self.field, "options.kind", "wrong_type", text, "Remove kind, or set it to text.")
            return
        self._pool, self.is_json_text = values
        self.dtype = self._pool.type
        if options.falls_back and options.default is not None:
            self._default = postprocess.override_pool(options.default, self.dtype)
            if not len(self._pool):
                self.dtype = self._default.type
            elif self._default.type != self.dtype:
                text = f"The default does not have the same type as the values ({self.dtype})."
                compiler.fault(
                    self.field, "options.default", "wrong_type", text, "Use a default of the same type."
                )
        if self.redacted and pa.types.is_string(self.dtype):
            self.max_length, self.is_json_text = len(REDACTED), False
        elif pa.types.is_string(self.dtype):
            pools = [
                item for item in (self._pool, self._default) if item is not None and item.type == self.dtype
            ]
            self.max_length = max((pc.max(pc.utf8_length(pool)).as_py() or 0 for pool in pools), default=0)

    def reject_empty(self, compiler: Compiler, text: str) -> None:
        """Reject a response without rows, unless the field has a default."""
        if self._external_options.on_empty == "error":
            hint = "Set on_empty: blank, or set on_empty: default and a default."
            compiler.fault(self.field, "", "empty_answer", text, hint)

    def select_values(self, index: np.ndarray, has_value: np.ndarray | None) -> pa.Array:
        """Return the values number ``index``; where ``has_value`` is false, the default or null."""
        if has_value is not None and not has_value.any():
            if self._default is None:
                return self._redact(pa.nulls(index.size, self.dtype))
            return self._redact(dictionary_array(self._default, np.zeros(index.size, np.int64)))
        if len(self._pool) <= _MAX_POOL:
            values: pa.Array = dictionary_array(self._pool, index)
        else:
            values = budget.take_within_budget(self._pool, pa.array(index))
        if has_value is not None and not has_value.all():
            values = postprocess.apply_blanks(values, ~has_value)
            if self._default is not None:
                values = text.decode_dictionary(values)
                values = pc.if_else(pa.array(has_value), values, self._default[0])
        return self._redact(values)

    def placeholder_values(self, n: int) -> pa.Array:
        """Return the placeholder value in every row."""
        return self._redact(dictionary_array(self._pool, np.zeros(n, np.int64)))

    def _redact(self, values: pa.Array) -> pa.Array:
        """Redact sensitive values, so that no field that reads the column receives them."""
        if not self.redacted:
            return values
        if not pa.types.is_string(self.dtype):
            return pa.nulls(len(values), self.dtype)
        indices = pa.array(
            np.zeros(len(values), np.int32), mask=values.is_null().to_numpy(zero_copy_only=False)
        )
        return pa.DictionaryArray.from_arrays(indices, _REDACTED)


_REDACTED = pa.array([REDACTED])


class DbResponse(ExternalColumn):
    """A value from the result of a query."""

    name = "db_response"
    label = "Database value"
    description = (
        "A value from a database query. With {{field}} placeholders, the query runs once per "
        "distinct set of values."
    )
    aliases = ("database response", "db query", "sql query", "query result", "lookup in database")
    example = "example"
    group_kind = ANSWER

    class Options(FetchOptions):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The connection to the database.",
            json_schema_extra=form_hints.connection("sql"),
        )  # fmt: skip
        query: str = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="A query in the target's query language. Values for {{field}} are passed as "
            "parameters, never inserted into the text.",
            json_schema_extra=form_hints.PATTERN,
        )  # fmt: skip
        column: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS,
            description="Column of the result. Default: the first.",
        )  # fmt: skip

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._answer: ExternalResponse | None = None
        self._counts: np.ndarray | None = None
        self._hides_values = False
        query = self._parse_query(compiler)
        if query is None:
            return
        self._question = ExternalQuery(
            options.connection_id, "query", (("of", self.required_fields), ("query", query))
        )
        self._key = self._question.key
        self._answer = answer = compiler.response(field, self._question, keyed=bool(self.required_fields))
        if answer is None:
            return
        self.use_response(answer, options.column, compiler)
        if answer.keys is None:
            if not answer.table.num_rows:
                self.reject_empty(compiler, "The query returned no rows.")
            return
        self._counts = np.diff(answer.starts)
        without = np.flatnonzero(self._counts == 0)
        if without.size:
            example = (
                ""
                if self._hides_values
                else f", such as {external_values.key_text(answer.keys[int(without[0])].as_py())}"
            )
            text = f"The query returned no rows for {without.size:,} of {len(answer.keys):,} sets of values{example}."
            self.reject_empty(compiler, text)

    def _parse_query(self, compiler: Compiler) -> str | None:
        """Return the query with ``{{p0}}`` and so on for its fields, and set `required_fields` to them; None after a
        fault."""
        field, options = self.field, self.options
        try:
            pattern = placeholders.parse(options.query)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.query", "bad_placeholder", str(error), where)
            return None
        fault_count, names = len(compiler.faults), [placeholder.name for placeholder in pattern.placeholders]
        self.required_fields = tuple(dict.fromkeys(names))
        for placeholder in pattern.placeholders:
            if placeholder.filters:
                text = f'"{placeholder.name}" has a filter, but values are inserted into queries unchanged.'
                hint = "Create the value in a hidden field of type derived, and use that field."
                compiler.fault(field, "options.query", "not_for_this_type", text, hint)
        for name in self.required_fields:
            column = compiler.require_column(field, "options.query", name)
            self._hides_values |= column is None or column.spec.common.sensitive
            if column is not None and pa.types.is_nested(column.dtype):
                text = f'"{name}" contains objects or arrays, which cannot be used in a query.'
                compiler.fault(
                    field, "options.query", "wrong_type", text, "Choose a field with single values."
                )
        if len(compiler.faults) > fault_count:
            return None
        parts = (
            part if isinstance(part, str) else f"{{{{p{self.required_fields.index(part.name)}}}}}"
            for part in pattern.parts
        )
        return "".join(parts)

    def fill(self, context: ColumnContext) -> pa.Array:
        answer = self._answer
        if not self.required_fields:
            if answer is None:
                return self.placeholder_values(context.n)
            rows = answer.table.num_rows
            if not rows:
                return self.select_values(np.zeros(context.n, np.int64), np.zeros(context.n, np.bool_))
            return self.select_values(
                engine_random.below(context.group(np.ndarray), rows).view(np.int64), None
            )
        columns = [context.column(name) for name in self.required_fields]
        keys = external_values.value_set_keys(columns)
        if answer is None:
            if context.env.recorder is not None:
                context.env.recorder.record(self._key, self.field.path, keys, columns)
            return self.placeholder_values(context.n)
        place = pc.index_in(keys, value_set=answer.keys)
        if not place.null_count:
            return self._values_for_keys(context, answer, place.to_numpy())
        # Rows whose set of values was not requested, as in a preview that makes no calls, are null.
        unknown = place.is_null().to_numpy(zero_copy_only=False)
        if unknown.all():
            return pa.nulls(context.n, self.dtype)
        values = self._values_for_keys(context, answer, pc.fill_null(place, 0).to_numpy())
        return postprocess.apply_blanks(values, unknown)

    def _values_for_keys(
        self, context: ColumnContext, answer: ExternalResponse, place: np.ndarray
    ) -> pa.Array:
        assert self._counts is not None  # an answer to a query with fields in it has them
        counts = self._counts[place]
        offsets = engine_random.below_each(context.group(np.ndarray), counts.astype(np.uint64)).view(np.int64)
        has_rows = counts > 0
        index = np.where(has_rows, answer.starts[place] + offsets, 0)
        return self.select_values(index, None if has_rows.all() else has_rows)

    def unique_hint(self) -> str:
        return "Fetched values may repeat. For unique keys of a table, use the type foreign_key."

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:{options.column or ''}"

    @classmethod
    def group_constraint(cls, options: Options) -> str:
        return f"{options.connection_id}\0{options.query}"


class QueryResultKind(GroupKind):
    """The draw that fields with the same query share: they show the same row of its result."""

    kind = ANSWER

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        for field in fields[1:]:
            if field.type.group_constraint(field.options) != first.type.group_constraint(first.options):
                text = f'The group "{first.group}" already uses another query.'
                compiler.fault(field, "group", "two_queries", text, "Use another group for this field.")

    def draw(self, draws: RandomStream, state: Any) -> np.ndarray:
        return draws.bits()


_VALUE, _BLANK, _DEFAULT = 0, 1, 2
_Text = Annotated[str, Field(min_length=1, max_length=limits.AI_TEXT_CHARS)]
_REFRESH = "Responses are stored. To request them again, refresh the fetched values of the connection."


class Ai(ExternalColumn):
    """A value that a model writes."""

    name = "ai"
    label = "AI"
    description = (
        "A value that an AI language model writes for each row, from a prompt with {{field}} placeholders."
    )
    aliases = ("ai_text", "llm", "gpt", "chat", "prompt", "ai field")
    example = "example"

    class Options(OptionsModel):
        connection_id: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS,
            description="Connection to the model. Default: the project's only connection of type ai.",
            json_schema_extra=form_hints.connection("prompts"),
        )  # fmt: skip
        prompt: str = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="Prompt for one row, with {{field}} placeholders for values of the row.",
            json_schema_extra=form_hints.PATTERN,
        )  # fmt: skip
        sort: Literal["text", "integer", "decimal", "boolean", "date", "choice"] | None = Field(
            None, alias="kind",
            description="Data type of the response. Default: text, or choice if choices are set.",
        )  # fmt: skip
        max_length: int | None = Field(
            None, ge=1, le=limits.AI_TEXT_CHARS, description="Maximum number of characters."
        )
        decimals: int = Field(
            2, ge=0, le=limits.MAX_DECIMALS, description="Decimal places, if kind is decimal."
        )
        choices: list[_Text] | None = Field(
            None, min_length=1, max_length=limits.AI_CHOICES, description="Allowed responses."
        )
        examples: list[_Text] = Field(
            default_factory=list, max_length=limits.AI_EXAMPLES,
            description="Example values for the model.",
        )  # fmt: skip
        temperature: float | None = Field(
            None, ge=0, le=2, allow_inf_nan=False,
            description="Sampling temperature of the model. Default: the server's default.",
        )  # fmt: skip
        same_for_equal_prompts: bool = Field(
            False,
            description=(
                "Rows with the same prompt get the same value. Otherwise each row gets its own value."
            ),
        )
        allow_sensitive: bool = Field(
            False, description="Allows sending values of sensitive fields to the model."
        )
        on_error: Literal["error", "blank", "default"] = Field(
            "error", description="What to do if no response is valid after all retries."
        )
        default: str | int | float | bool | None = Field(
            None, description="Value if on_error is default and applies."
        )

        @model_validator(mode="after")
        def _check_kind(self) -> Self:
            if (self.answered == "choice") != (self.choices is not None):
                raise ValueError("kind: choice requires choices, and choices require kind: choice")
            if self.max_length is not None and self.answered != "text":
                raise ValueError("max_length is only available for kind: text")
            return self

        @property
        def answered(self) -> str:
            """The requested kind."""
            return self.sort or ("choice" if self.choices is not None else "text")

        @property
        def kind(self) -> Kind:
            """The kind that values are converted to."""
            return "text" if self.answered == "choice" else self.answered  # type: ignore[return-value]  # the others are kinds

        @property
        def on_empty(self) -> str:
            """A model that does not answer is an error like any other."""
            return self.on_error

        @property
        def falls_back(self) -> bool:
            """Return whether the default value may be needed."""
            return self.on_error == "default"

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        examples = options.choices or options.examples
        if examples and options.kind == "text":
            self._pool = pa.array(examples[:1])
        self._answer: ExternalResponse | None = None
        pattern = self._parse_prompt(compiler)
        if pattern is None:
            return
        self._pattern = pattern
        question = self._question()
        self._key = question.key
        self._answer = answer = compiler.response(field, question, keyed=True)
        if answer is not None:
            self._set_values(answer, compiler)

    def _parse_prompt(self, compiler: Compiler) -> PlaceholderText | None:
        """Return the prompt, and set `required_fields` to its fields; None after a fault."""
        field, options = self.field, self.options
        try:
            pattern = placeholders.parse(options.prompt)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.prompt", "bad_placeholder", str(error), where)
            return None
        fault_count = len(compiler.faults)
        self.required_fields = tuple(dict.fromkeys(placeholder.name for placeholder in pattern.placeholders))
        nested = set()
        for name in self.required_fields:
            column = compiler.require_column(field, "options.prompt", name)
            if column is not None and pa.types.is_nested(column.dtype):
                nested.add(name)
        for placeholder in pattern.placeholders:
            if placeholder.name in nested and not placeholder.is_json:
                message = f'"{placeholder.name}" contains objects or arrays.'
                hint = f"Use {{{{{placeholder.name} | json}}}}, or choose a field with single values."
                compiler.fault(field, "options.prompt", "wrong_type", message, hint)
        sensitive = sorted(spec.name for spec in compiler.required_fields() if spec.common.sensitive)
        if sensitive and not options.allow_sensitive:
            message = (
                f'The prompt contains "{sensitive[0]}", which is sensitive, and would be sent to the model.'
            )
            hint = "Remove it from the prompt, or set allow_sensitive: true."
            compiler.fault(field, "options.prompt", "sensitive", message, hint)
        self._hides_values = self.redacted or bool(sensitive)
        return pattern if len(compiler.faults) == fault_count else None

    def _question(self) -> ExternalQuery:
        options = self.options
        details = (
            ("of", (("bears", options.on_error != "error"), ("quiet", self._hides_values))),
            ("answer", options.answered),
            ("max_length", options.max_length),
            ("decimals", options.decimals if options.answered == "decimal" else None),
            ("choices", tuple(options.choices or ())),
            ("examples", tuple(options.examples)),
            ("temperature", options.temperature),
        )
        return ExternalQuery(
            options.connection_id or "", "ai", details, (options.same_for_equal_prompts, options.prompt)
        )

    # --- Rows ---------------------------------------------------------------------------------------------------

    def fill(self, context: ColumnContext) -> pa.Array:
        answer = self._answer
        recorder = context.env.recorder
        if answer is None and recorder is None:
            return self.placeholder_values(context.n)
        # Rendered prompt, seed and row are the key of an answer.
        prompts = text.decode_dictionary(self._pattern.fill(context.column, context.n))
        columns = [prompts, pa.array([context.env.seed] * context.n, pa.string())]
        if not self.options.same_for_equal_prompts:
            columns.append(pa.array([str(row) for row in context.rows.tolist()], pa.string()))
        keys = external_values.value_set_keys(columns)
        if answer is None:
            assert recorder is not None
            recorder.record(self._key, self.field.path, keys, columns)
            return self.placeholder_values(context.n)
        place = pc.index_in(keys, value_set=answer.keys)
        unknown = place.is_null().to_numpy(
            zero_copy_only=False
        )  # not requested, as in a preview that makes no calls
        if unknown.all():
            return pa.nulls(context.n, self.dtype)
        index = pc.fill_null(place, 0).to_numpy().astype(np.int64)
        is_value = self._states[index] != _DEFAULT
        values = self.select_values(index, None if is_value.all() else is_value)
        return postprocess.apply_blanks(values, unknown) if unknown.any() else values

    # --- Answers ------------------------------------------------------------------------------------------------

    def _set_values(self, answer: ExternalResponse, compiler: Compiler) -> None:
        """Convert the response to values."""
        problems = answer.table.column("trouble").to_pylist()
        failed = [place for place, problem in enumerate(problems) if problem]
        if failed and self.options.on_error == "error":
            failures = f"{len(failed):,} of {len(problems):,} prompts are invalid: {problems[failed[0]]}"
            message = f"The model's answers to {failures}."
            compiler.fault(
                self.field, "", "bad_answer", message, f"Set on_error to blank or default. {_REFRESH}"
            )
            return
        states = np.full(len(problems), _VALUE, np.int8)
        states[failed] = _DEFAULT if self.options.falls_back and self.options.default is not None else _BLANK
        self._states = states
        self.use_response(answer, "value", compiler)

    def unique_hint(self) -> str:
        return "Values from a model may repeat."


def _validate_path(path: str) -> str:
    if re.match(r"[A-Za-z][\w+.-]*:|//", path):
        raise ValueError("a path is resolved against the connection's base URL and must not contain a host")
    if not path.isprintable() or "\\" in path or "#" in path:
        raise ValueError("a path must not contain line breaks, backslashes or #")
    if ".." in path.partition("?")[0].split("/"):
        raise ValueError("a path must not contain .. segments")
    return path


def _validate_json_path(extract: str) -> str:
    json_paths.parse_path(extract)
    return extract


class ApiResponse(ExternalColumn):
    """A value from the response of an API."""

    name = "api_response"
    label = "API value"
    description = (
        "A value from a REST API. With {{field}} placeholders in the path, each distinct path "
        "is requested once."
    )
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

    class Options(FetchOptions):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The REST connection to call.",
            json_schema_extra=form_hints.connection("fetch"),
        )  # fmt: skip
        path: Annotated[str, AfterValidator(_validate_path)] = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="Path on the connection, with an optional query string. Values for {{field}} are "
            "percent-encoded.",
            json_schema_extra=form_hints.PATTERN,
        )  # fmt: skip
        extract: Annotated[str, AfterValidator(_validate_json_path)] = Field(
            "$", min_length=1, max_length=limits.JSON_PATH_CHARS,
            description="JSONPath of the value in the response; the first match is used. Default: the whole response.",
        )  # fmt: skip
        on_error: Literal["error", "blank", "default"] = Field(
            "error",
            description="What to do if the API returns an error such as 404, or a response that is not JSON.",
        )
        on_empty: Literal["error", "blank", "default"] = Field(
            "error", description="What to do if extract finds nothing in the response."
        )
        default: str | int | float | bool | None = Field(
            None, description="Value if on_error or on_empty is default and applies."
        )

        @property
        def falls_back(self) -> bool:
            return "default" in (self.on_empty, self.on_error)

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._hides_values = self.redacted
        self._answer: ExternalResponse | None = None
        pattern = self._parse_path(compiler)
        if pattern is None:
            return
        self._pattern = pattern
        question = self._question()
        self._key = question.key
        self._answer = answer = compiler.response(field, question, keyed=bool(self.required_fields))
        if answer is not None:
            self._set_values(answer, compiler)

    def _parse_path(self, compiler: Compiler) -> PlaceholderText | None:
        """Return the path, and set `required_fields` to its fields; None after a fault."""
        field = self.field
        try:
            pattern = placeholders.parse(self.options.path)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.path", "bad_placeholder", str(error), where)
            return None
        fault_count = len(compiler.faults)
        self.required_fields = tuple(dict.fromkeys(placeholder.name for placeholder in pattern.placeholders))
        for name in self.required_fields:
            column = compiler.require_column(field, "options.path", name)
            self._hides_values |= column is None or column.spec.common.sensitive
            if column is not None and pa.types.is_nested(column.dtype):
                message = f'"{name}" contains objects or arrays, which cannot be used in a path.'
                compiler.fault(
                    field, "options.path", "wrong_type", message, "Choose a field with single values."
                )
        if len(compiler.faults) > fault_count:
            return None
        return pattern if self.options.path.startswith("/") else PlaceholderText(("/", *pattern.parts))

    def _question(self) -> ExternalQuery:
        options = self.options
        fixed = () if self.required_fields else ("".join(map(str, self._pattern.parts)),)
        details = (
            ("bears", options.on_error != "error"),
            ("path", options.path),
            ("quiet", self._hides_values),
        )
        return ExternalQuery(options.connection_id, "http", (("of", details),), fixed)

    # --- Rows ---------------------------------------------------------------------------------------------------

    def fill(self, context: ColumnContext) -> pa.Array:
        answer = self._answer
        if not self.required_fields:
            return (
                self.placeholder_values(context.n)
                if answer is None
                else self._values_at(np.zeros(context.n, np.int64))
            )
        # The path of each row; null if a value in it is null: then no request is made.
        pieces = [part if isinstance(part, str) else _encoded(part, context) for part in self._pattern.parts]
        paths: pa.Array = pieces[0] if len(pieces) == 1 else budget.join_texts(pieces, context.n)
        if answer is None:
            if context.env.recorder is not None:
                requested = paths.drop_null()
                context.env.recorder.record(self._key, self.field.path, requested, [requested])
            return postprocess.apply_blanks(self.placeholder_values(context.n), _nulls(paths))
        place = pc.index_in(paths, value_set=answer.keys, skip_nulls=True)
        unknown = _nulls(place)  # null in its path, or not requested, as in a preview that makes no calls
        if unknown.all():
            return pa.nulls(context.n, self.dtype)
        values = self._values_at(pc.fill_null(place, 0).to_numpy().astype(np.int64))
        return postprocess.apply_blanks(values, unknown) if unknown.any() else values

    def _values_at(self, place: np.ndarray) -> pa.Array:
        is_value = self._states[place] != _DEFAULT
        return self.select_values(place, None if is_value.all() else is_value)

    # --- Answers ------------------------------------------------------------------------------------------------

    def _set_values(self, answer: ExternalResponse, compiler: Compiler) -> None:
        """Convert the responses to values: the first match in each body."""
        values, empty, failed = self._extract_values(answer, compiler)
        states = np.full(len(values), _VALUE, np.int8)
        for places, what in ((empty, self.options.on_empty), (failed, self.options.on_error)):
            states[places] = _DEFAULT if what == "default" and self.options.default is not None else _BLANK
        self._states = states
        column, nested = self._build_column(values, compiler)
        if column is None:
            return
        self.use_response(
            ExternalResponse(pa.table({"value": column}), answer.snapshot, answer.keys, answer.starts),
            None,
            compiler,
        )
        if nested and not self.redacted and pa.types.is_string(self.dtype):
            self.is_json_text = True
            if _DEFAULT in states and not _is_json(self.options.default):
                message = "The values are objects or arrays, so the default must be JSON."
                compiler.fault(
                    self.field, "options.default", "wrong_type", message, 'Use JSON, such as "{}" or "[]".'
                )

    def _extract_values(
        self, answer: ExternalResponse, compiler: Compiler
    ) -> tuple[list[Any], list[int], list[int]]:
        """Return the values, and the positions of missing values and of values that could not be converted."""
        path = json_paths.parse_path(self.options.extract)
        values: list[Any] = []
        empty: list[int] = []
        failed: list[int] = []
        table = answer.table
        responses = list(
            zip(table.column("body").to_pylist(), table.column("trouble").to_pylist(), strict=True)
        )
        for place, (body, problem) in enumerate(responses):
            found, value = False, None
            try:
                found, value = (
                    json_paths.find_first(path, orjson.loads(body)) if body is not None else (False, None)
                )
            except ValueError:
                failed.append(place)
            else:
                if not found:
                    (failed if problem else empty).append(place)
            values.append(value)
        if failed and self.options.on_error == "error":
            reason = responses[failed[0]][1] or "a response that extract does not match"
            text_ = f"The target returned {reason}{self._affected_paths(answer, failed, len(responses))}."
            compiler.fault(
                self.field,
                "",
                "bad_answer",
                text_,
                f"Set on_error to blank or default. {_REFRESH}",
            )
        if empty:
            where = self._affected_paths(answer, empty, len(responses))
            self.reject_empty(
                compiler, f"extract ({self.options.extract}) finds nothing in the response{where}."
            )
        return values, empty, failed

    def _affected_paths(self, answer: ExternalResponse, places: list[int], count: int) -> str:
        if answer.keys is None:
            return ""
        example = (
            ""
            if self._hides_values
            else f", such as {answer.keys[places[0]].as_py()[: limits.FETCHED_MESSAGE_CHARS]}"
        )
        return f" to {len(places):,} of {count:,} paths{example}"

    def _build_column(self, values: Sequence[Any], compiler: Compiler) -> tuple[pa.Array | None, bool]:
        """The values as one Arrow array, and whether they are JSON documents; None after a fault."""
        kinds = {_kind_name(value) for value in values if value is not None}
        if not kinds:
            default = self.options.default
            return pa.nulls(len(values), pa.null() if default is None else pa.array([default]).type), False
        if self.options.kind is not None or kinds == {"objects or arrays"}:
            return self._convert_to_texts(values), kinds == {"objects or arrays"}
        if len(kinds) > 1:
            message = f"The responses contain values of different types: {', '.join(sorted(kinds))}."
            compiler.fault(
                self.field,
                "options.kind",
                "wrong_type",
                message,
                "Set kind to one type, such as text.",
            )
            return None, False
        if any(isinstance(value, float) for value in values):
            values = [None if value is None else float(value) for value in values]
        try:
            return pa.array(values), False
        except (OverflowError, pa.ArrowException):  # integers beyond 64 bits
            return self._convert_to_texts(values), False

    def _convert_to_texts(self, values: Sequence[Any]) -> pa.Array:
        """Return values as texts, or as timestamps if that kind is requested and all values can be parsed."""
        texts = [
            value if value is None or isinstance(value, str) else orjson.dumps(value).decode()
            for value in values
        ]
        column = pa.array(texts, pa.string())
        if self.options.kind == "datetime":
            for zone in (None, "UTC"):
                try:
                    return column.cast(pa.timestamp("us", zone))
                except pa.ArrowException:
                    continue
        return column

    def unique_hint(self) -> str:
        return "Fetched values may repeat."


def _encoded(placeholder: Placeholder, context: ColumnContext) -> pa.Array:
    """``string[n]``: a value of each row, percent-encoded; null stays null."""
    texts = text.decode_dictionary(PlaceholderText((placeholder,)).fill(context.column, context.n))
    blank = pc.or_(pc.is_null(text.decode_dictionary(context.column(placeholder.name))), pc.equal(texts, ""))
    encoded = pc.if_else(blank, pa.scalar(None, pa.string()), texts).dictionary_encode()
    quoted = pa.array([quote(item, safe="") for item in encoded.dictionary.to_pylist()], pa.string())
    return quoted.take(encoded.indices)


def _nulls(column: pa.Array) -> np.ndarray:
    return column.is_null().to_numpy(zero_copy_only=False)


def _kind_name(value: Any) -> str:
    if isinstance(value, bool):
        return "booleans"
    if isinstance(value, int | float):
        return "numbers"
    return "texts" if isinstance(value, str) else "objects or arrays"


def _is_json(default: Any) -> bool:
    try:
        orjson.loads(str(default))
    except orjson.JSONDecodeError:
        return False
    return isinstance(default, str)


class DatasetColumn(ExternalColumn):
    """A value from a column of a file."""

    name = "dataset_column"
    label = "Column of a file"
    category = "choice"
    description = (
        "A value from a column of a workspace file: random, row by row, or looked up by another field."
    )
    aliases = ("dataset", "csv column", "column from file", "lookup in file", "file value")
    example = "example"

    class Options(FetchOptions):
        file: str = Field(
            min_length=1,
            max_length=limits.MAX_FILE_NAME_CHARS,
            description="A workspace file: CSV, JSON, NDJSON, XLSX or Parquet.",
        )
        column: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="Column with the values."
        )
        mode: Literal["random", "sequential", "lookup"] = Field(
            "random",
            description="random: any row of the file. sequential: row by row, starting over after the "
            "last. lookup: the first row whose key_column equals the value of the field in "
            "key.",
        )
        key: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description=("For lookup: a field of the row."),
        )
        key_column: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description="For lookup: the column of the file to compare with. Default: the column with "
            "the field's name.",
        )
        sheet: str | None = Field(
            None,
            min_length=1,
            max_length=limits.MAX_NAME_CHARS,
            description=("Sheet of a workbook. Default: the first."),
        )

        @model_validator(mode="after")
        def _check_lookup(self) -> DatasetColumn.Options:
            if (self.mode == "lookup") != (self.key is not None):
                raise ValueError("key is required for mode: lookup, and only allowed there")
            if self.key_column is not None and self.mode != "lookup":
                raise ValueError("key_column is only available for mode: lookup")
            return self

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.key is not None and compiler.require_column(field, "options.key", options.key) is not None:
            self.required_fields = (options.key,)
        details = (("file", options.file), ("sheet", options.sheet))
        answer = compiler.response(field, ExternalQuery("", "file", details))
        self._rows, self._keys, self._first = 0, pa.array([], pa.string()), np.zeros(0, np.int64)
        self._has_answer = answer is not None
        if answer is not None and answer.loaded_source is not None:
            self._read_file(answer, compiler)
        if (
            field.common.unique
            and self._has_answer
            and self.distinct_count() is not None
            and (len(self._pool.unique()) < len(self._pool) or self._pool.null_count)
        ):
            message = f'"{options.file}" has duplicate or blank values in "{options.column}".'
            compiler.fault(field, "unique", "not_unique", message, "Remove unique, or choose another column.")

    def _read_file(self, answer: ExternalResponse, compiler: Compiler) -> None:
        assert answer.loaded_source is not None
        options, table = self.options, answer.loaded_source.table.table
        self._rows = table.num_rows
        self.use_response(replace(answer, table=table), options.column, compiler)
        if not self._rows:
            self.reject_empty(compiler, f'There are no rows in "{options.file}".')
        if options.mode != "lookup":
            return
        name = options.key_column or options.key
        if name not in table.column_names:
            message = f'The file has no column "{name}". Its columns: {", ".join(table.column_names[:20])}.'
            compiler.fault(
                self.field,
                "options.key_column",
                "unknown_column",
                message,
                "Set key_column to the column to compare with.",
            )
            return
        keys = text.to_text(text.decode_dictionary(table.column(name).combine_chunks()))
        encoded = keys.dictionary_encode()
        numbers = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
        distinct, first = np.unique(numbers, return_index=True)
        not_null = distinct >= 0
        self._keys = encoded.dictionary.take(pa.array(distinct[not_null]))
        self._first = first[not_null].astype(np.int64)

    def fill(self, context: ColumnContext) -> pa.Array:
        if not self._has_answer:
            return self.placeholder_values(context.n)
        if not self._rows:
            return self.select_values(np.zeros(context.n, np.int64), np.zeros(context.n, np.bool_))
        match self.options.mode:
            case "random":
                return self.select_values(context.below(self._rows).view(np.int64), None)
            case "sequential":
                return self.select_values((context.rows % np.uint64(self._rows)).view(np.int64), None)
        keys = text.to_text(text.decode_dictionary(context.column(self.required_fields[0])))
        place = pc.index_in(keys, value_set=self._keys)
        has_row = place.is_valid().to_numpy(zero_copy_only=False)
        number = pc.fill_null(place, 0).to_numpy(zero_copy_only=False)
        index = self._first[number] if self._first.size else np.zeros(context.n, np.int64)
        return self.select_values(np.where(has_row, index, 0), None if has_row.all() else has_row)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        if not self._has_answer or self.options.mode == "sequential":
            return self.fill(context)
        return self.select_values(context.permuted(self._rows).view(np.int64), None)

    def distinct_count(self) -> int | None:
        if self.redacted or self.options.mode == "lookup":
            return None
        return self._rows if self._has_answer else limits.MAX_PARENTS

    def unique_hint(self) -> str:
        return "Looked-up values can repeat, and all redacted values are equal: remove unique."


_BLANK_SALT, _CHOICE_SALT = -100, -101


class ForeignKey(ExternalColumn):
    """A key that exists already in a table of a connection."""

    name = "foreign_key"
    label = "Existing key"
    category = "identity"
    description = "An existing key, drawn for each row from a table of a connection."
    aliases = ("key in target", "existing foreign key", "external key", "database key")
    example = 4711
    group_kind = EXISTING
    blank_together = True
    _kind: Kind = "integer"

    class Options(FetchOptions):
        connection_id: str = Field(
            max_length=limits.MAX_NAME_CHARS, description="The connection to the database.",
            json_schema_extra=form_hints.connection("tables"),
        )  # fmt: skip
        table: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="Table that contains the keys.",
            json_schema_extra=form_hints.table_of("connection_id"),
        )  # fmt: skip
        column: str = Field(
            min_length=1, max_length=limits.MAX_NAME_CHARS, description="Column with the value.",
            json_schema_extra=form_hints.column_of("table", "connection_id"),
        )  # fmt: skip
        filter: str = Field(
            "", max_length=limits.MAX_FORMULA_CHARS,
            description="Optional filter: a condition in the target's query language (the part after WHERE).",
        )  # fmt: skip

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._rows: ExistingRowKind = compiler.group_kind_of(field)
        answer = self._rows.answer
        if field.common.unique and field.common.text_case:
            text = "Keys that differ only in case would become the same."
            compiler.fault(field, "text_case", "not_unique", text, "Remove text_case, or remove unique.")
        if answer is None:
            return
        self.use_response(answer, options.column, compiler)
        if not self._rows.rows:
            where = " that match the filter" if options.filter else ""
            self.reject_empty(compiler, f'There are no rows in "{options.table}"{where}.')

    def fill(self, context: ColumnContext) -> pa.Array:
        things = context.group(ExistingRows)
        if self._rows.answer is None:
            values = self.placeholder_values(context.n)
        else:
            values = self.select_values(
                things.rows, None if self._rows.rows else np.zeros(context.n, np.bool_)
            )
        return values if things.valid is None else postprocess.apply_blanks(values, ~things.valid)

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        return self.fill(context)

    def distinct_count(self) -> int | None:
        if not self.field.common.unique or self.redacted:
            return None
        return self._rows.space()

    def unique_hint(self) -> str:
        return (
            "Sensitive keys are redacted, and then all values are equal: remove sensitive, or remove unique."
        )

    def bounds(self, rows: int) -> tuple[int, int] | None:
        if self.redacted or not pa.types.is_integer(self._pool.type) or not len(self._pool):
            return None
        low, high = (end.as_py() for end in pc.min_max(self._pool).values())
        return low, high

    @classmethod
    def group_attribute(cls, options: Options) -> str:
        return f"{cls.name}:{options.column}"

    @classmethod
    def group_constraint(cls, options: Options) -> str:
        return f"{options.connection_id}\0{options.table}\0{options.filter}"


class ExistingRows:
    """The rows of a snapshot that a block's rows take. ``valid`` is false for rows without one (None: all have one)."""

    __slots__ = ("rows", "valid")

    def __init__(self, rows: np.ndarray, valid: np.ndarray | None) -> None:
        self.rows, self.valid = rows, valid


class ExistingRowKind(GroupKind):
    """The one row of an existing table that the fields of a group show, so that composite keys are consistent."""

    kind = EXISTING

    def __init__(self, fields: tuple[FieldSpec, ...], compiler: Compiler) -> None:
        super().__init__(fields, compiler)
        first = fields[0]
        for field in fields[1:]:
            if field.type.group_constraint(field.options) != first.type.group_constraint(first.options):
                text = f'The group "{first.group}" already uses another table or another filter.'
                compiler.fault(field, "group", "two_tables", text, "Use another group for this field.")
        options = _key_options(first)
        columns = sorted({_key_options(field).column for field in fields})
        details = (("columns", columns), ("filter", options.filter.strip()), ("table", options.table))
        self.answer = compiler.response(first, ExternalQuery(options.connection_id, "keys", details))
        self.rows = 1 if self.answer is None else self.answer.table.num_rows
        shares = {field.common.percent_blank: field for field in fields if field.common.percent_blank}
        if len(shares) > 1:
            text = (
                "The fields of a group are blank in the same rows, but two of them have different values "
                "for percent_blank."
            )
            compiler.fault(
                list(shares.values())[1],
                "percent_blank",
                "contradiction",
                text,
                "Use the same percent_blank for all of them.",
            )
        share = Fraction(max(shares, default=0))
        self._blank = (share.numerator, share.denominator) if share else None
        self._choice: np.ndarray | None = None
        unique = [field for field in fields if field.common.unique]
        if unique and self.answer is not None and set(columns) <= set(self.answer.table.column_names):
            self._choice = _rows_with_distinct_values(
                self.answer.table, [_key_options(field).column for field in unique]
            )
        self._unique = bool(unique)

    @property
    def choice_count(self) -> int:
        """The rows that one row may choose from."""
        return self.rows

    @property
    def is_uniform(self) -> bool:
        """Return whether any row may get any row of the snapshot with the same probability."""
        return not self._unique and self._blank is None

    def space(self) -> int:
        """Return how many rows can each get a different key; a large number while the keys are unknown."""
        if self.answer is None:
            return limits.MAX_PARENTS
        return self.rows if self._choice is None else self._choice.size

    def select_rows(self, rows: np.ndarray) -> ExistingRows:
        """Return the rows of the snapshot that were chosen elsewhere (see ``relations/unique_together.py``)."""
        return ExistingRows(rows.view(np.int64), None)

    def draw(self, draws: RandomStream, state: Any) -> ExistingRows:
        valid = None
        if self._blank is not None:
            valid = ~engine_random.blank_mask(
                engine_random.derive(draws.key, _BLANK_SALT), draws.rows, *self._blank
            )
        if not self.rows or self.answer is None:
            return ExistingRows(np.zeros(draws.n, np.int64), valid)
        if not self._unique:
            return ExistingRows(draws.below(self.rows, _CHOICE_SALT).view(np.int64), valid)
        place = draws.permuted(self.space()).view(np.int64)
        return ExistingRows(place if self._choice is None else self._choice[place], valid)


def _key_options(field: FieldSpec) -> ForeignKey.Options:
    assert isinstance(field.options, ForeignKey.Options)  # no other type is in a group of existing keys
    return field.options


def _rows_with_distinct_values(table: pa.Table, columns: list[str]) -> np.ndarray:
    """``int64[k]``: rows in which no value of any of the columns is one of an earlier row."""
    rows = np.arange(table.num_rows, dtype=np.int64)
    for name in dict.fromkeys(columns):
        codes = table.column(name).take(pa.array(rows)).combine_chunks().dictionary_encode()
        if isinstance(codes, pa.ChunkedArray):
            codes = codes.combine_chunks()
        rows = rows[np.unique(codes.indices.to_numpy(), return_index=True)[1]]
    return np.sort(rows)
