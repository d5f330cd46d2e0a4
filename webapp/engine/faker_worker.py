"""The child that draws a pool: one request as JSON on its input, one answer as JSON on its output.

It imports nothing of the project, has limited memory and time, and uses a fixed clock, so that a pool depends only on
its request. It runs as a program that ``types/faker.py`` starts.
"""

from __future__ import annotations

import datetime as real
import inspect
import json
import math
import re
import sys
import time
import types
from decimal import Decimal
from difflib import get_close_matches
from typing import Any

# Methods that return no data, files, bytes or objects of Python that have no text form.
UNSUPPORTED_METHODS = frozenset(
    "seed seed_instance seed_locale add_provider get_providers provider provider_by_name get_formatter set_formatter"
    " format parse get_arguments set_arguments del_arguments random unique optional factories locales weights items"
    " cache_pattern generator_attrs add_element get_words_list enum binary json_bytes zip tar image pyobject"
    " xml".split()
)
"""Methods that are not supported."""
_SIZED = re.compile(r"(^|_)(nb|num|length|digits|size|count|chars|rows|elements|bytes|limit)(_|$)")
_MAX_SUGGESTIONS = 3
_REPEATED_VALUES = 20
"""Values that are drawn twice, to see that they come again."""


class InvalidRequest(Exception):
    """An invalid request: ``code``, the option that is wrong, the message, and a hint."""

    def __init__(self, code: str, option: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.fault = {"code": code, "option": option, "message": message, "hint": hint}


class FixedClock:
    """A clock fixed at ``now`` (seconds, UTC), which records whether it was read."""

    def __init__(self, now: int) -> None:
        self.now, self.was_read = now, False

    def seconds(self) -> float:
        """The return value of ``time.time()``."""
        self.was_read = True
        return float(self.now)

    def install(self) -> None:
        """Puts itself in the place of the clock in every module of Faker's that has been imported."""
        clock = self

        class Alike(type):
            def __instancecheck__(cls, one: Any) -> bool:
                return isinstance(one, cls.__mro__[1])

        class DateTime(real.datetime, metaclass=Alike):
            @classmethod
            def now(cls, tz: real.tzinfo | None = None) -> real.datetime:  # type: ignore[override]  # a plain one, not of this class
                moment = real.datetime.fromtimestamp(clock.seconds(), tz or real.UTC)
                return moment if tz else moment.replace(tzinfo=None)

            @classmethod
            def utcnow(cls) -> real.datetime:  # type: ignore[override]  # a plain one, not of this class
                return cls.now()

            @classmethod
            def today(cls) -> real.datetime:  # type: ignore[override]  # a plain one, not of this class
                return cls.now()

        class Date(real.date, metaclass=Alike):
            @classmethod
            def today(cls) -> real.date:  # type: ignore[override]  # a plain one, not of this class
                return DateTime.now().date()

        days = types.SimpleNamespace(**{**vars(real), "datetime": DateTime, "date": Date})
        seconds = types.SimpleNamespace(**{**vars(time), "time": clock.seconds})
        instead = {real.datetime: DateTime, real.date: Date, time.time: clock.seconds}
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] != "faker":
                continue
            for attribute, value in list(vars(module).items()):
                if value is real or value is time:
                    setattr(module, attribute, days if value is real else seconds)
                elif isinstance(value, type | types.BuiltinFunctionType) and value in instead:
                    setattr(module, attribute, instead[value])


def provider_methods(generator: Any) -> dict[str, Any]:
    """The provider that each method of a generator comes from, by the method's name."""
    found: dict[str, Any] = {}
    for provider in reversed(generator.get_providers()):
        for name in dir(provider):
            if not name.startswith("_") and callable(getattr(provider, name)):
                found[name] = provider
    return found


def find_method(generator: Any, method: str) -> tuple[Any, str | None]:
    """A method by its name, and the locale whose words it has (None: it has none)."""
    available = provider_methods(generator)
    if method.startswith("_") or method in UNSUPPORTED_METHODS:
        text = f'Faker\'s "{method}" is not supported: its result cannot be stored in a row.'
        raise InvalidRequest(
            "refused_method", "method", text, "Choose a method of one of Faker's providers, such as `name`."
        )
    if method not in available:
        suggestions = get_close_matches(
            method, [name for name in available if name not in UNSUPPORTED_METHODS], _MAX_SUGGESTIONS
        )
        hint = (
            f"Did you mean {' or '.join(f'`{name}`' for name in suggestions)}?"
            if suggestions
            else "See Faker's documentation."
        )
        raise InvalidRequest("unknown_method", "method", f'Faker has no method "{method}".', hint)
    return getattr(generator, method), available[method].__lang__


def check_arguments(call: Any, arguments: dict[str, Any], maximum: int) -> None:
    """Reject arguments that the method does not accept, and sizes beyond ``maximum``."""
    parameters = inspect.signature(call).parameters
    open_ended = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values())
    takes = [
        name
        for name, parameter in parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_POSITIONAL
    ]
    for name, value in arguments.items():
        if name not in parameters and not open_ended:
            hint = f"Available arguments: {', '.join(takes)}." if takes else "The method has no arguments."
            raise InvalidRequest(
                "unknown_key", f"arguments.{name}", f'The method has no argument "{name}".', hint
            )
        size = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
        if _SIZED.search(name) and abs(size) > maximum:
            text = f"{name} is {size:,}; the maximum is {maximum:,}."
            raise InvalidRequest("too_large", f"arguments.{name}", text, "Use smaller arguments.")


def draw_values(call: Any, request: dict[str, Any]) -> list[Any]:
    """Return the requested number of values, within the limits of processor time and size."""
    arguments, end = request["arguments"], time.process_time() + request["seconds"]
    values: list[Any] = []
    size = 0
    for at in range(request["count"]):
        try:
            value = typed_value(call(**arguments))
        except InvalidRequest:
            raise
        except MemoryError:
            raise InvalidRequest(
                "too_large", "arguments", "A value takes too much memory.", "Use smaller arguments."
            ) from None
        except Exception as error:  # a provider may raise anything
            text = f"Faker reports: {type(error).__name__}: {str(error)[:200]}"
            raise InvalidRequest("method_failed", "arguments", text, "Correct the arguments.") from None
        values.append(value)
        length = len(value[1]) if isinstance(value[1], str) else 8
        if length > request["longest"]:
            text = f"A value has {length:,} characters; the maximum is {request['longest']:,}."
            raise InvalidRequest("too_large", "arguments", text, "Use arguments that produce shorter values.")
        size += length
        if size > request["bytes"]:
            text = f"{at + 1:,} values already have {request['bytes']:,} characters."
            raise InvalidRequest("too_large", "arguments", text, "Use arguments that produce shorter values.")
        if time.process_time() > end and at + 1 < request["count"]:
            text = f"{at + 1:,} of {request['count']:,} values took {request['seconds']:g} seconds."
            raise InvalidRequest(
                "too_slow", "arguments", text, "Use arguments that produce smaller values, or another method."
            )
    return values


def typed_value(value: Any) -> tuple[str, Any]:
    """(kind, value) of what a method answered, as JSON can carry it. Kinds: null, boolean, integer, decimal, float,
    text, date, datetime, json."""
    match value:
        case None:
            return "null", None
        case bool():
            return "boolean", value
        case int():
            return ("integer", value) if -(2**63) <= value < 2**63 else ("text", str(value))
        case float():
            return ("float", value) if math.isfinite(value) else ("null", None)
        case Decimal():
            return ("decimal", str(value)) if value.is_finite() else ("null", None)
        case str():
            return "text", value
        case real.datetime():
            aware = value.astimezone(real.UTC).replace(tzinfo=None) if value.tzinfo else value
            return "datetime", aware.isoformat(timespec="microseconds")
        case real.date():
            return "date", value.isoformat()
        case bytes() | bytearray():
            raise InvalidRequest(
                "refused_method", "method", "The method returns bytes.", "Choose a method that returns text."
            )
        case dict() | list() | tuple() | set() | frozenset():
            return "json", json.dumps(json_value(value), ensure_ascii=False, separators=(",", ":"))
    return "text", str(value)


def json_value(value: Any) -> Any:
    """A structure as JSON has it; sets in the order of their texts."""
    if isinstance(value, dict):
        return {str(key): json_value(item) for key, item in value.items()}
    if isinstance(value, set | frozenset):
        return [json_value(item) for item in sorted(value, key=str)]
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    kind, one = typed_value(value)
    return float(one) if kind == "decimal" else one


def handle_request(request: dict[str, Any]) -> dict[str, Any]:
    """The drawn values: ``kinds`` and ``values`` by number, the method's locale, and whether it used the current
    time."""
    from faker import Faker

    generator = Faker(request["locale"]).factories[0]
    clock = FixedClock(request["now"])
    clock.install()
    call, language = find_method(generator, request["method"])
    check_arguments(call, request["arguments"], request["largest"])
    generator.seed_instance(request["seed"])
    first = draw_values(call, {**request, "count": _REPEATED_VALUES})
    generator.seed_instance(request["seed"])
    drawn = draw_values(call, request)
    if drawn[:_REPEATED_VALUES] != first:
        text = "The method does not return the same values for the same seed."
        raise InvalidRequest("refused_method", "method", text, "Choose another method.")
    kinds, values = zip(*drawn, strict=True)
    return {"kinds": kinds, "values": values, "language": language, "clocked": clock.was_read}


def set_resource_limits(megabytes: int, seconds: int) -> None:
    """Limit the memory and processor time of this process, if the system supports it."""
    try:
        import resource
    except ImportError:
        return
    for what, maximum in ((resource.RLIMIT_AS, megabytes << 20), (resource.RLIMIT_CPU, seconds)):
        resource.setrlimit(what, (maximum, maximum))


def main() -> None:
    """Answers the one request."""
    request = json.load(sys.stdin)
    set_resource_limits(request["megabytes"], math.ceil(2 * request["seconds"]))
    try:
        message = handle_request(request)
    except InvalidRequest as error:
        message = {"refused": error.fault}
    json.dump(message, sys.stdout)


if __name__ == "__main__":
    main()
