"""The memory of compiled templates is bounded and gives back what it was given."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from webapp import limits
from webapp.row_templates.services import compiled_plans
from webapp.row_templates.services.compiled_plans import CompiledTemplate, PlanCache


def source(name: str) -> CompiledTemplate:
    return CompiledTemplate(cast(Any, SimpleNamespace()), name, 1)


def test_the_least_recently_used_goes_first():
    memory = PlanCache(entries=2, weight=100)
    memory.put("a", source("a"), 1)
    memory.put("b", source("b"), 1)
    assert memory.get("a") is not None
    memory.put("c", source("c"), 1)
    assert memory.get("b") is None
    assert memory.get("a") is not None
    assert memory.get("c") is not None


def test_it_holds_no_more_than_its_weight():
    memory = PlanCache(entries=100, weight=10)
    for name in "abcdef":
        memory.put(name, source(name), 4)
    assert [name for name in "abcdef" if memory.get(name)] == ["e", "f"]


def test_replacing_an_entry_counts_once():
    memory = PlanCache(entries=100, weight=10)
    for _ in range(5):
        memory.put("a", source("a"), 5)
    memory.put("b", source("b"), 5)
    assert memory.get("a") is not None


def test_a_template_heavier_than_the_memory_is_not_kept():
    memory = PlanCache(entries=100, weight=10)
    memory.put("a", source("a"), 11)
    assert memory.get("a") is None


def test_texts_that_formulas_computed_have_their_weight(app, monkeypatch):
    """A formula of 20 characters keeps a text of 10,000."""
    stored: list[int] = []
    monkeypatch.setattr(PlanCache, "put", lambda self, key, source, weight: stored.append(weight))
    for expression in ('repeat("x", 10)', 'repeat("x", 10000)'):
        fields = [
            {"name": f"f{n}", "type": "formula", "options": {"expression": expression}} for n in range(50)
        ]
        compiled_plans.compile_draft("t", fields, 1, None, "en_US")
    assert stored[1] - stored[0] > 50 * 10_000 // limits.COMPILED_SIZE_FACTOR
