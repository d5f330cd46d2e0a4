"""The reference of connections names every kind, every setting and every stage."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from webapp.connectors import KINDS
from webapp.connectors.base import STAGES

REFERENCE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "connections.md").read_text()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_and_setting_has_its_line(kind):
    assert re.search(rf"^\| `{kind}` \|", REFERENCE, re.MULTILINE)
    section = REFERENCE.partition(f"### Settings of `{kind}`")[2].partition("\n#")[0]
    result = set(re.findall(r"`([a-z0-9_]+)`", "".join(re.findall(r"^\|([^|]*)\|", section, re.MULTILINE))))
    assert result == {info.alias or name for name, info in KINDS[kind].Settings.model_fields.items()}


@pytest.mark.parametrize("stage", STAGES)
def test_every_stage_has_its_line(stage):
    assert re.search(rf"^\| `{stage}` \|", REFERENCE, re.MULTILINE)
