"""Templates and their fields as Python objects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, TypedDict, Union

if TYPE_CHECKING:
    from typing_extensions import Unpack  # included in type checkers; not needed at run time


class Common(TypedDict, total=False):
    """The keys of every field, whatever its type."""

    percent_blank: float
    """Percentage of null values."""
    unique: Union[bool, str]
    """All values are different. With a label: fields with the same label are unique in combination."""
    locale: Optional[str]
    """Language and country of the values, such as de_DE. Default: that of the template."""
    group: Optional[str]
    """Fields of one group are consistent: a person's name and e-mail address, a city and its country."""
    sensitive: bool
    """Mask source values before they are output."""
    masking: Optional[Mapping[str, Any]]
    """Masking strategy."""
    hidden: bool
    """Usable in formulas and by other fields, but not part of the output."""
    formula: Optional[str]
    """A formula over the row that replaces the generated value."""
    prefix: str
    """Text before every value."""
    suffix: str
    """Text after every value."""
    text_case: Optional[str]
    """upper, lower, title or sentence."""
    description: str
    """For people."""
    id: Optional[str]
    """ID that seeds the column; it stays the same when the field is edited."""


class _Unset:
    """Marks an option that was not given, as opposed to null."""

    def __repr__(self) -> str:
        return "UNSET"


UNSET: Any = _Unset()


class Field:
    """A field: `type` is a name in the catalogue, `name` the key in the rows. `rowsmith.fields` has a class
    for each type.

    `options` are the type's options as in the catalogue. The classes of `rowsmith.fields` also accept each
    option as a keyword, which overrides the same key in `options`. The keys of `Common` are keywords of every
    class.
    """

    type_name: str = ""

    def __init__(
        self,
        name: str,
        type: Optional[str] = None,
        options: Optional[Mapping[str, Any]] = None,
        **more: Unpack[Common],
    ) -> None:
        self._set(name, options, more, {})
        if type is not None:
            self.type_name = type

    def _set(
        self,
        name: str,
        options: Optional[Mapping[str, Any]],
        common: Mapping[str, Any],
        named: Mapping[str, Any],
    ) -> None:
        if options is not None and not isinstance(options, Mapping):
            text = f"{type(self).__name__}: options must be a dictionary, not {type(options).__name__}"
            raise TypeError(text)
        unknown = sorted(set(common) - set(Common.__annotations__))
        if unknown:
            raise TypeError(f"{type(self).__name__} has no option {', '.join(unknown)}")
        self.name = name
        self.common: dict[str, Any] = dict(common)
        self.options: dict[str, Any] = {
            **(options or {}),
            **{key: value for key, value in named.items() if value is not UNSET},
        }

    @property
    def type(self) -> str:
        """The name of the type in the catalogue."""
        return self.type_name

    def to_dict(self) -> dict[str, Any]:
        """Return the field as input for the service."""
        made: dict[str, Any] = {"name": self.name, "type": self.type_name, **self.common}
        if self.options:
            made["options"] = plain(self.options)
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Field) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]  # its options may change

    def __repr__(self) -> str:
        message = ", ".join(f"{k}={v!r}" for k, v in {**self.options, **self.common}.items())
        return f"{type(self).__name__}({self.name!r}{', ' if message else ''}{message})"


AnyField = Union[Field, Mapping[str, Any]]


class Template:
    """A template: a name, fields, and a default number of rows.

    `more` are further keys of a template: description, locale, anchor; for `generate` also seed, now, offset,
    overrides.
    """

    def __init__(
        self,
        name: str = "",
        quantity: Optional[int] = None,
        fields: Iterable[AnyField] = (),
        **more: Any,
    ) -> None:
        self.name = name
        self.quantity = quantity
        self.fields: list[AnyField] = list(fields)
        self.more = more

    def to_dict(self) -> dict[str, Any]:
        """Return the template as input for the service, without keys that were not given."""
        made: dict[str, Any] = {"fields": [plain(field) for field in self.fields], **plain(self.more)}
        if self.name:
            made["name"] = self.name
        if self.quantity is not None:
            made["quantity"] = self.quantity
        return made

    def __repr__(self) -> str:
        return f"Template({self.name!r}, quantity={self.quantity!r}, {len(self.fields)} fields)"


AnyTemplate = Union[Template, Mapping[str, Any]]


def as_dict(template: AnyTemplate) -> dict[str, Any]:
    """Return a template in either form as input for the service."""
    if isinstance(template, Template):
        return template.to_dict()
    if not isinstance(template, Mapping):
        raise TypeError(f"Expected a Template or a dictionary, not {type(template).__name__}.")
    made: dict[str, Any] = plain(template)
    return made


def plain(value: Any) -> Any:
    """Return the value with fields and templates converted to dictionaries."""
    if isinstance(value, (Field, Template)):
        return value.to_dict()
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value
