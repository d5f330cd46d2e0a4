"""Values that a model writes: a prompt is rendered for each row, and asked once under the seed and the row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, model_validator

from webapp import limits
from webapp.engine import outside, picks, placeholders, postprocess, text
from webapp.engine.fields.base import OptionsModel
from webapp.engine.fields.outside import Outside
from webapp.engine.outside import Answer, Kind, Question
from webapp.engine.placeholders import Pattern

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.spec import FieldSpec

_VALUE, _BLANK, _DEFAULT = 0, 1, 2
_Text = Annotated[str, Field(min_length=1, max_length=limits.AI_TEXT_CHARS)]
_REFRESH = "What was answered is kept: refresh what was fetched from the connection to ask again."


class Ai(Outside):
    """A value that a model writes."""

    name = "ai"
    label = "AI"
    description = "A value that a language model writes for each row; {{field}} in the prompt is filled in."
    aliases = ("ai_text", "llm", "gpt", "chat", "prompt", "ai field")
    example = "example"

    class Options(OptionsModel):
        connection_id: str | None = Field(
            None, max_length=limits.MAX_NAME_CHARS,
            description="The connection to the model; the project's only one of type ai, if not said.",
            json_schema_extra=picks.connection("prompts"),
        )  # fmt: skip
        prompt: str = Field(
            min_length=1, max_length=limits.MAX_FORMULA_CHARS,
            description="What the model is asked for one row, with {{field}} where values of the row belong.",
            json_schema_extra=picks.PATTERN,
        )  # fmt: skip
        sort: Literal["text", "integer", "decimal", "boolean", "date", "choice"] | None = Field(
            None, alias="kind",
            description="What the answer is; text, or one of choices where there are any, if not said.",
        )  # fmt: skip
        max_length: int | None = Field(
            None, ge=1, le=limits.AI_TEXT_CHARS, description="Characters of a text, at most."
        )
        decimals: int = Field(
            2, ge=0, le=limits.MAX_DECIMALS, description="Places after the point, where kind is decimal."
        )
        choices: list[_Text] | None = Field(
            None, min_length=1, max_length=limits.AI_CHOICES, description="The answer is one of these."
        )
        examples: list[_Text] = Field(
            default_factory=list, max_length=limits.AI_EXAMPLES,
            description="Values such as the model should write.",
        )  # fmt: skip
        temperature: float | None = Field(
            None, ge=0, le=2, allow_inf_nan=False,
            description="How freely the model chooses; the server's own, if not said.",
        )  # fmt: skip
        same_for_equal_prompts: bool = Field(
            False, description="Rows whose prompts are equal get the same value; else each gets its own."
        )
        allow_sensitive: bool = Field(
            False, description="Values of sensitive fields may be sent to the model."
        )
        on_error: Literal["error", "blank", "default"] = Field(
            "error", description="What to do where no answer fits, however often it is asked for."
        )
        default: str | int | float | bool | None = Field(
            None, description="The value where on_error is default and comes to pass."
        )

        @model_validator(mode="after")
        def _fits_together(self) -> Self:
            if (self.answered == "choice") != (self.choices is not None):
                raise ValueError("kind: choice and choices go together: write both, or neither")
            if self.max_length is not None and self.answered != "text":
                raise ValueError("max_length is for answers of kind text")
            return self

        @property
        def answered(self) -> str:
            """What is asked for."""
            return self.sort or ("choice" if self.choices is not None else "text")

        @property
        def kind(self) -> Kind:
            """What the values are taken as."""
            return "text" if self.answered == "choice" else self.answered  # type: ignore[return-value]

        @property
        def on_empty(self) -> str:
            """A model that does not answer is an error like any other."""
            return self.on_error

        @property
        def falls_back(self) -> bool:
            """Whether the default may come to be used."""
            return self.on_error == "default"

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        shown = options.choices or options.examples
        if shown and options.kind == "text":
            self._pool = pa.array(shown[:1])
        self._answer: Answer | None = None
        pattern = self._read(compiler)
        if pattern is None:
            return
        self._pattern = pattern
        question = self._question()
        self._key = question.key
        self._answer = answer = compiler.ask(field, question, keyed=True)
        if answer is not None:
            self._take(answer, compiler)

    def _read(self, compiler: Compiler) -> Pattern | None:
        """The prompt, whose fields are then `needs`; None after a fault."""
        field, options = self.field, self.options
        try:
            pattern = placeholders.parse(options.prompt)
        except placeholders.PlaceholderError as error:
            where = f"At character {error.position + 1}."
            compiler.fault(field, "options.prompt", "bad_placeholder", str(error), where)
            return None
        before = len(compiler.faults)
        self.needs = tuple(dict.fromkeys(hole.name for hole in pattern.holes))
        nested = set()
        for name in self.needs:
            column = compiler.require(field, "options.prompt", name)
            if column is not None and pa.types.is_nested(column.dtype):
                nested.add(name)
        for hole in pattern.holes:
            if hole.name in nested and not hole.json:
                told = f'"{hole.name}" holds objects or arrays.'
                hint = f"Write {{{{{hole.name} | json}}}}, or name a field with single values."
                compiler.fault(field, "options.prompt", "wrong_type", told, hint)
        secret = sorted(one.name for one in compiler.read_so_far() if one.common.sensitive)
        if secret and not options.allow_sensitive:
            told = f'The prompt is made of "{secret[0]}", which is sensitive, and would be sent to the model.'
            hint = "Take it out of the prompt, or write allow_sensitive: true."
            compiler.fault(field, "options.prompt", "sensitive", told, hint)
        self._quiet = self.redacted or bool(secret)
        return pattern if len(compiler.faults) == before else None

    def _question(self) -> Question:
        options = self.options
        said = (
            ("of", (("bears", options.on_error != "error"), ("quiet", self._quiet))),
            ("answer", options.answered),
            ("max_length", options.max_length),
            ("decimals", options.decimals if options.answered == "decimal" else None),
            ("choices", tuple(options.choices or ())),
            ("examples", tuple(options.examples)),
            ("temperature", options.temperature),
        )
        return Question(
            options.connection_id or "", "ai", said, (options.same_for_equal_prompts, options.prompt)
        )

    # --- Rows ---------------------------------------------------------------------------------------------------

    def fill(self, cells: Cells) -> pa.Array:
        answer = self._answer
        recorder = cells.env.recorder
        if answer is None and recorder is None:
            return self.stood_in(cells.n)
        columns = self._values(cells)
        keys = outside.keys_of(columns)
        if answer is None:
            assert recorder is not None
            recorder.note(self._key, self.field.path, keys, columns)
            return self.stood_in(cells.n)
        place = pc.index_in(keys, value_set=answer.keys)
        unknown = place.is_null().to_numpy(zero_copy_only=False)  # asked by nobody: a look that calls nobody
        if unknown.all():
            return pa.nulls(cells.n, self.dtype)
        index = pc.fill_null(place, 0).to_numpy().astype(np.int64)
        there = self._states[index] != _DEFAULT
        made = self.picked(index, None if there.all() else there)
        return postprocess.blanked(made, unknown) if unknown.any() else made

    def _values(self, cells: Cells) -> list[pa.Array]:
        """Rendered prompt, seed and row: what an answer is kept by."""
        prompts = text.decode(self._pattern.fill(cells.column, cells.n))
        values = [prompts, pa.array([cells.env.seed] * cells.n, pa.string())]
        if not self.options.same_for_equal_prompts:
            values.append(pa.array([str(row) for row in cells.rows.tolist()], pa.string()))
        return values

    # --- Answers ------------------------------------------------------------------------------------------------

    def _take(self, answer: Answer, compiler: Compiler) -> None:
        """Makes the values of what was answered."""
        troubles = answer.table.column("trouble").to_pylist()
        failed = [place for place, trouble in enumerate(troubles) if trouble]
        if failed and self.options.on_error == "error":
            such = f"{len(failed):,} of {len(troubles):,} prompts do not fit: {troubles[failed[0]]}"
            told = f"The model's answers to {such}."
            compiler.fault(
                self.field, "", "bad_answer", told, f"Write on_error: blank, or default. {_REFRESH}"
            )
            return
        states = np.full(len(troubles), _VALUE, np.int8)
        states[failed] = _DEFAULT if self.options.falls_back and self.options.default is not None else _BLANK
        self._states = states
        self.use(answer, "value", compiler)

    def unique_hint(self) -> str:
        return "What a model writes may repeat."
