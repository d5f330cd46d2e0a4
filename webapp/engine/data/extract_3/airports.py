"""The airports of the second extractor, for the places of this one, whose cities are the same row for row."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from webapp.engine.data import extract_2
from webapp.engine.data.extract_3 import places


def _module() -> ModuleType:
    """A second copy of the module, which reads the places of this extractor: those of the first would be calculated
    once more for nothing."""
    spec = spec_from_file_location(
        "webapp.engine.data.extract_3.second_airports", Path(extract_2.__file__).with_name("airports.py")
    )
    assert spec is not None  # the file is part of the package
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    module.places = places  # type: ignore[attr-defined]
    return module


_OWN = _module()
airports, city_airports, near_airports = _OWN.airports, _OWN.city_airports, _OWN.near_airports
