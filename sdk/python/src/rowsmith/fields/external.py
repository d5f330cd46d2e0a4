"""Fields of the category external, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AIField(Field):
    """A value that a language model writes for each row; {{field}} in the prompt is filled in.

    connection_id: The connection to the model; the project's only one of type ai, if not said.
    prompt: What the model is asked for one row, with {{field}} where values of the row belong.
    kind: What the answer is; text, or one of choices where there are any, if not said.
    max_length: Characters of a text, at most.
    decimals: Places after the point, where kind is decimal.
    choices: The answer is one of these.
    examples: Values such as the model should write.
    temperature: How freely the model chooses; the server's own, if not said.
    same_for_equal_prompts: Rows whose prompts are equal get the same value; else each gets its own.
    allow_sensitive: Values of sensitive fields may be sent to the model.
    on_error: What to do where no answer fits, however often it is asked for.
    default: The value where on_error is default and comes to pass.
    """

    type_name = "ai"

    def __init__(
        self,
        name: str,
        prompt: str,
        *,
        options: Mapping[str, Any] | None = None,
        connection_id: str | None = UNSET,
        kind: Literal["text", "integer", "decimal", "boolean", "date", "choice"] | None = UNSET,
        max_length: int | None = UNSET,
        decimals: int = UNSET,
        choices: list[str] | None = UNSET,
        examples: list[str] = UNSET,
        temperature: float | None = UNSET,
        same_for_equal_prompts: bool = UNSET,
        allow_sensitive: bool = UNSET,
        on_error: Literal["error", "blank", "default"] = UNSET,
        default: str | int | float | bool | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "connection_id": connection_id,
                "prompt": prompt,
                "kind": kind,
                "max_length": max_length,
                "decimals": decimals,
                "choices": choices,
                "examples": examples,
                "temperature": temperature,
                "same_for_equal_prompts": same_for_equal_prompts,
                "allow_sensitive": allow_sensitive,
                "on_error": on_error,
                "default": default,
            },
        )


class ApiResponseField(Field):
    """A value that a REST API answers; with {{field}} in its path, asked once for each path.

    on_empty: What to do where extract finds nothing in the answer.
    default: The value where on_error or on_empty is default and comes to pass.
    kind: What the values are taken as; as the target has them, if not said.
    decimals: Places after the point, where kind is decimal.
    connection_id: The REST connection to call.
    path: The path on the connection, with a query where it needs one. The value for {{field}} is percent-
        encoded.
    extract: JSONPath of the value in the answer: the first match counts. The whole answer, if not said.
    on_error: What to do where the path is answered 404 or the like, or by what is not JSON.
    """

    type_name = "api_response"

    def __init__(
        self,
        name: str,
        connection_id: str,
        path: str,
        *,
        options: Mapping[str, Any] | None = None,
        on_empty: Literal["error", "blank", "default"] = UNSET,
        default: str | int | float | bool | None = UNSET,
        kind: Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime"] | None = UNSET,
        decimals: int = UNSET,
        extract: str = UNSET,
        on_error: Literal["error", "blank", "default"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "on_empty": on_empty,
                "default": default,
                "kind": kind,
                "decimals": decimals,
                "connection_id": connection_id,
                "path": path,
                "extract": extract,
                "on_error": on_error,
            },
        )


class DbResponseField(Field):
    """A value that a query answers; with {{field}} in it, asked once for each set of values.

    on_empty: What to do where the answer has no rows.
    default: The value where the answer has no rows and on_empty is default.
    kind: What the values are taken as; as the target has them, if not said.
    decimals: Places after the point, where kind is decimal.
    connection_id: The connection to the database.
    query: A query in the target's own language. Values for {{field}} are handed to the driver, never
        pasted in.
    column: Which column of the answer is shown; the first, if not said.
    """

    type_name = "db_response"

    def __init__(
        self,
        name: str,
        connection_id: str,
        query: str,
        *,
        options: Mapping[str, Any] | None = None,
        on_empty: Literal["error", "blank", "default"] = UNSET,
        default: str | int | float | bool | None = UNSET,
        kind: Literal["text", "integer", "decimal", "float", "boolean", "date", "datetime"] | None = UNSET,
        decimals: int = UNSET,
        column: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(
            name,
            options,
            common,
            {
                "on_empty": on_empty,
                "default": default,
                "kind": kind,
                "decimals": decimals,
                "connection_id": connection_id,
                "query": query,
                "column": column,
            },
        )


class SourceColumnField(Field):
    """A value of the template's source as it stands there: text, number, date, yes or no."""

    type_name = "source_column"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
