"""Read YAML 1.1 as plain JSON values, event by event.

PyYAML's own loaders compose recursively (deep nesting ends the process), follow aliases and merge keys without a limit,
and create types that JSON does not have. Here, nesting, aliases and merged keys are counted while the document is
read. Dates remain text, keys become text, and application tags are rejected.
"""

from __future__ import annotations

import math
from typing import Any, Final

import yaml

from webapp import limits
from webapp.document_process import DocumentError, too_deep

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = tuple(_TAG + one for one in ("bool", "int", "float"))
_KNOWN: Final = frozenset(
    _TAG + one
    for one in ("null", "bool", "int", "float", "str", "binary", "timestamp", "merge", "value", "map", "seq")
) | {"!"}
_MERGE: Final = "<<"
_NUMBER_CHARS: Final = 400  # more characters than any number that fits in a double


def load(raw: bytes) -> Any:
    """Return the value of the only document in `raw`.

    Raises `yaml.YAMLError` or `ValueError` if it is not valid YAML, and `DocumentError` if it exceeds a
    limit.
    """
    loader = _Loader(raw)
    try:
        return _Builder(loader).document()
    finally:
        loader.dispose()


class _Builder:
    """Builds values from the events of a parser."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._anchors: dict[str, tuple[Any, int]] = {}
        """Values by anchor name, with the number of values inside them. Those of aliases count each time."""

    def document(self) -> Any:
        """Return the value of the document. See `load`."""
        found: Any = None
        documents = 0
        # Open containers: the value, the key that waits for its value, the anchor, and the size so far.
        stack: list[list[Any]] = []
        while self._loader.check_event():
            event = self._loader.get_event()
            if getattr(event, "tag", None) is not None and event.tag not in _KNOWN:
                raise ValueError(f'it has the tag "{event.tag[:80]}", which is not plain YAML')
            if isinstance(event, yaml.ScalarEvent):
                value, size = self._scalar(event), 1
                if event.anchor is not None:
                    self._anchors[event.anchor] = value, size
            elif isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                if len(stack) >= limits.DOCUMENT_LEVELS:
                    raise too_deep()
                made: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                stack.append([made, _NO_KEY, event.anchor, 1, []])
                if event.anchor is not None:
                    self._anchors.pop(event.anchor, None)  # an anchor cannot be used inside itself
                continue
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                value, _, anchor, size, merged = stack.pop()
                if merged:
                    value = _merged(merged, value)
                if anchor is not None:
                    self._anchors[anchor] = value, size
            elif isinstance(event, yaml.AliasEvent):
                assert event.anchor is not None  # an alias has a name
                if event.anchor not in self._anchors:
                    raise ValueError(f'the alias "{event.anchor[:80]}" has no value before it')
                value, size = self._anchors[event.anchor]
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise ValueError("it contains more than one document")
                continue
            else:
                continue
            if stack:
                self._put(stack[-1], value, size)
            else:
                found = value
        return found

    def _put(self, container: list[Any], value: Any, size: int) -> None:
        """Add a value to an open container, or keep it as the key of the next value."""
        made, key, _, _, merged = container
        container[3] += size
        if container[3] > limits.DOCUMENT_YAML_VALUES:
            text = f"With its aliases expanded, the YAML document has more than {limits.DOCUMENT_YAML_VALUES:,} values."
            raise DocumentError(text, "Use fewer aliases, or JSON.")
        if isinstance(made, list):
            made.append(value)
        elif key is _NO_KEY:
            container[1] = _key(value)
        else:
            container[1] = _NO_KEY
            if key != _MERGE:
                made[key] = value
                return
            sources = value if isinstance(value, list) else [value]
            if not all(isinstance(source, dict) for source in sources):
                raise ValueError("a merge key (<<) needs a mapping, or a list of mappings")
            merged.extend(sources)

    def _scalar(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._loader.resolve(yaml.ScalarNode, text, event.implicit)
        if tag == _TAG + "null":
            return None
        if tag not in _SCALARS or len(text) > _NUMBER_CHARS:
            return text
        try:
            value = self._loader.construct_object(yaml.ScalarNode(tag, text))
            if type(value) is int and abs(value) >= 2**63:
                value = float(value)  # as in JSON
        except (ValueError, LookupError, AttributeError, OverflowError):  # the tag of another kind of text
            return text
        return text if isinstance(value, float) and not math.isfinite(value) else value


_NO_KEY: Final = object()


def _merged(sources: list[dict[str, Any]], own: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of merged mappings, of which the first has priority, and the mapping's own keys, which
    override them."""
    made: dict[str, Any] = {}
    for source in sources:
        for key, value in source.items():
            made.setdefault(key, value)
    return made | own


def _key(value: Any) -> str:
    if isinstance(value, dict | list):
        raise ValueError("a key is a mapping or a list")
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
