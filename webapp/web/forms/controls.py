"""The controls of a form: WTForms fields that convert a JSON value to text for users and back.

Each has `json_value()`: the entered JSON value, or `UNSET`. Text that cannot be converted is passed on unchanged, so
that the model that validates the input reports the error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from wtforms import (  # type: ignore[attr-defined]  # SelectChoice is new in WTForms 3.3; the stubs are of 3.2
    BooleanField,
    Field,
    FormField,
    SelectChoice,
    SelectField,
    SelectMultipleField,
    StringField,
)
from wtforms.form import BaseForm
from wtforms.widgets import NumberInput, TextArea

if TYPE_CHECKING:

    class RenderedField(Field):
        """A control with the attributes that forms of this package add for the templates."""

        required: bool
        sealed: bool
        """Whether it has a secret, which is never shown again."""
        control: str
        """`Control.type`."""
        anchor: str
        """The id that the summary of errors links to."""
        focused: bool
        group: str | None
        pick: Mapping[str, Any]
        """Suggestions for the input; see `engine/form_hints.py`."""

        def json_value(self) -> Any:
            """Return the entered JSON value, or `UNSET`."""


UNSET: Final = object()
_INTEGER = re.compile(r"[+-]?\d+")
_DECIMAL = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def as_text(value: Any) -> str:
    """Return a JSON value as the text of an input: strings unchanged, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def parse_integer(text: str) -> int | str:
    """Return an integer; the text itself if it is not one."""
    return int(text) if _INTEGER.fullmatch(text) else text


def parse_number(text: str) -> int | str:
    """Return a whole number as int, and any other text unchanged: the models parse decimals from text exactly."""
    return parse_integer(text) if _INTEGER.fullmatch(text) else text


def parse_json_or_text(text: str) -> Any:
    """Return any JSON value: `5`, `true`, `null`, `["a"]` and `"5"` are parsed as JSON, everything else is text."""
    try:
        return json.loads(text, parse_constant=str)
    except ValueError:
        return text


def format_json_or_text(value: Any) -> str:
    """Return the text that `parse_json_or_text` parses as `value`."""
    if isinstance(value, str) and parse_json_or_text(value) == value and value.strip():
        return value
    return json.dumps(value, ensure_ascii=False, default=str)


class Line(StringField):
    """One line of text, read by `read` (default: the text itself)."""

    def __init__(
        self,
        label: str = "",
        read: Callable[[str], Any] = str,
        write: Callable[[Any], str] = as_text,
        **kwargs: Any,
    ) -> None:
        super().__init__(label, **kwargs)
        self._read, self._write = read, write

    def process_data(self, value: Any) -> None:
        """Set the value from JSON."""
        self.data = "" if value is None else self._write(value)

    def process_formdata(self, valuelist: list[str]) -> None:
        """Set the value from the submitted form."""
        self.data = valuelist[0] if valuelist else ""

    def json_value(self) -> Any:
        """The entered text."""
        text = self.data or ""
        if self._read is not str:
            text = text.strip()
        return self._read(text) if text else UNSET


class Number(Line):
    """A number."""

    widget = NumberInput()

    def process_data(self, value: Any) -> None:
        """Set the value from JSON; decimals are text or a number."""
        self.data = "" if value is None else str(Decimal(repr(value)) if isinstance(value, float) else value)


class Anything(Line):
    """Any JSON value on one line."""

    def __init__(self, label: str = "", **kwargs: Any) -> None:
        super().__init__(label, parse_json_or_text, format_json_or_text, **kwargs)
        self._null = False

    def process_data(self, value: Any) -> None:
        """Set the value from JSON; a missing value stays empty."""
        self.data = "" if value is UNSET else format_json_or_text(value)


class Text(Line):
    """Text of several lines."""

    widget = TextArea()


class Lines(Line):
    """A list with one value per line. With `single_as_value`, a single line is the value itself instead of a list."""

    widget = TextArea()

    def __init__(
        self,
        label: str = "",
        item: Callable[[str], Any] = str,
        write: Callable[[Any], str] = as_text,
        single_as_value: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(label, **kwargs)
        self._item, self._write_item, self._single_as_value = item, write, single_as_value

    def process_data(self, value: Any) -> None:
        """Set the value from JSON; a single value counts as a list of one."""
        if value is None:
            self.data = ""
        elif isinstance(value, Sequence) and not isinstance(value, str):
            self.data = "\n".join(self._write_item(item) for item in value)
        else:
            self.data = self._write_item(value)

    def json_value(self) -> Any:
        """Return the lines that are not empty."""
        lines = [line.strip() for line in (self.data or "").splitlines() if line.strip()]
        if not lines:
            return UNSET
        found = [self._item(line) for line in lines]
        return found[0] if self._single_as_value and len(found) == 1 else found


class Json(Line):
    """A JSON document. Text that is not valid JSON is passed on as text."""

    widget = TextArea()

    def __init__(self, label: str = "", **kwargs: Any) -> None:
        super().__init__(label, parse_json_or_text, **kwargs)

    def process_data(self, value: Any) -> None:
        """Set the value from JSON, indented."""
        self.data = "" if value is None else json.dumps(value, ensure_ascii=False, indent=1, default=str)


_CHOICE_TEXTS: Final = {"\t": "tab", ";": "; semicolon", ",": ", comma", "|": "| bar"}  # invisible characters


class Choice(SelectField):
    """One of a few values. The empty choice keeps the default, and shows its name if there is one."""

    def __init__(
        self,
        label: str = "",
        values: Sequence[Any] = (),
        empty: str = "default",
        normally: Any = None,
        **kwargs: Any,
    ) -> None:
        self._default_value = None if normally is None else as_text(normally)
        self._values = {as_text(value): value for value in values if as_text(value) != self._default_value}
        empty_text = empty if self._default_value is None else self._default_value
        choices = [SelectChoice("", _CHOICE_TEXTS.get(empty_text, empty_text))]
        choices += [SelectChoice(text, _CHOICE_TEXTS.get(text, text)) for text in self._values]
        super().__init__(label, choices=choices, coerce=str, validate_choice=False, **kwargs)

    def process_data(self, value: Any) -> None:
        """Set the value from JSON. A value that is not a choice is added, so that it is shown and kept."""
        self.data = as_text(value)
        if self.data == self._default_value:
            self.data = ""
        elif self.data and self.data not in self._values:
            self.choices = [*(self.choices or ()), SelectChoice(self.data, self.data)]

    def process_formdata(self, valuelist: list[str]) -> None:
        """Set the value from the submitted form."""
        self.data = valuelist[0] if valuelist else ""

    def json_value(self) -> Any:
        """The selected value."""
        return self._values.get(self.data, self.data) if self.data else UNSET


class Choices(SelectMultipleField):
    """Some of a few values."""

    def __init__(self, label: str = "", values: Sequence[str] = (), **kwargs: Any) -> None:
        super().__init__(
            label, choices=[SelectChoice(value, value) for value in values], validate_choice=False, **kwargs
        )

    def json_value(self) -> Any:
        """The selected values."""
        return list(self.data) if self.data else UNSET


class Switch(BooleanField):
    """A checkbox; only a value that differs from the default is sent."""

    false_values = (False, "false", "")

    def __init__(self, label: str = "", normally: bool = False, **kwargs: Any) -> None:
        super().__init__(label, default=normally, **kwargs)
        self._default_value = normally

    def process_data(self, value: Any) -> None:
        """Set the value from JSON."""
        self.data = self._default_value if value is None else bool(value)

    def json_value(self) -> Any:
        """True or false."""
        return UNSET if self.data == self._default_value else bool(self.data)


class Part(FormField):  # type: ignore[type-arg]  # generic only in the stubs
    """An object inside an object."""

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        """Set the value from a form or from JSON; a number is a range with equal ends."""
        if isinstance(data, int):
            data = {"min": data, "max": data}
        super().process(formdata, {} if not isinstance(data, Mapping) else data)

    def json_value(self) -> Any:
        """Return the object; unset if nothing in it was entered."""
        found = payload(self.form)
        return found or UNSET


class Range(Part):
    """An object with `min` and `max`, and optional keys. Both empty: no object; only one: exactly that number."""

    def __init__(self, form_class: Any, label: str, shape: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(form_class, label, **kwargs)
        self._default_value = {name: shape[name].get("default") for name in ("min", "max")}

    def process(self, formdata: Any, data: Any = None, extra_filters: Any = None) -> None:
        """Parse the two values from a form or from JSON; a missing one is the default."""
        if isinstance(data, Mapping) and data:
            data = {**self._default_value, **data}
        super().process(formdata, data, extra_filters)

    def json_value(self) -> Any:
        """Return the object; unset if both values are missing."""
        found = payload(self.form)
        ends = [found[name] for name in ("min", "max") if name in found]
        if not ends:
            return UNSET
        return {**found, "min": ends[0], "max": ends[-1]}

    @property
    def ends(self) -> list[Field]:
        """The two controls."""
        return [self.form["min"], self.form["max"]]

    @property
    def rarer(self) -> list[Field]:
        """The controls of the other keys."""
        return [field for field in self.form if field.short_name not in ("min", "max")]


def payload(form: BaseForm) -> dict[str, Any]:
    """Return the entered values of a form as a JSON object, by the names of its model."""
    found: dict[str, Any] = {}
    for field in form:
        reader = getattr(field, "json_value", None)
        value = reader() if reader is not None else (field.data or UNSET)
        if value is not UNSET:
            found[field.short_name] = value
    return found
