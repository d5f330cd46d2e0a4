"""Fields of the category external, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class AIField(Field):
    """A value that an AI language model writes for each row, from a prompt with {{field}} placeholders.

    connection_id: Connection to the model. Default: the project's only connection of type ai.
    prompt: Prompt for one row, with {{field}} placeholders for values of the row.
    kind: Data type of the response. Default: text, or choice if choices are set.
    max_length: Maximum number of characters.
    decimals: Decimal places, if kind is decimal.
    choices: Allowed responses.
    examples: Example values for the model.
    temperature: Sampling temperature of the model. Default: the server's default.
    same_for_equal_prompts: Rows with the same prompt get the same value. Otherwise each row gets its own
        value.
    allow_sensitive: Allows sending values of sensitive fields to the model.
    on_error: What to do if no response is valid after all retries.
    default: Value if on_error is default and applies.
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
    """A value from a REST API. With {{field}} placeholders in the path, each distinct path is requested
    once.

    on_empty: What to do if extract finds nothing in the response.
    default: Value if on_error or on_empty is default and applies.
    kind: Data type of the values. Default: the type in the source.
    decimals: Decimal places, if kind is decimal.
    connection_id: The REST connection to call.
    path: Path on the connection, with an optional query string. Values for {{field}} are percent-encoded.
    extract: JSONPath of the value in the response; the first match is used. Default: the whole response.
    on_error: What to do if the API returns an error such as 404, or a response that is not JSON.
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
    """A value from a database query. With {{field}} placeholders, the query runs once per distinct set of
    values.

    on_empty: What to do if the query returns no rows.
    default: Value if the query returns no rows and on_empty is default.
    kind: Data type of the values. Default: the type in the source.
    decimals: Decimal places, if kind is decimal.
    connection_id: The connection to the database.
    query: A query in the target's query language. Values for {{field}} are passed as parameters, never
        inserted into the text.
    column: Column of the result. Default: the first.
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
    """An unchanged value from the template's source: text, number, date or boolean."""

    type_name = "source_column"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
