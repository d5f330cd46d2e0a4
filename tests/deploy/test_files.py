"""All deployment files start the processes of the Procfile, and only use existing names and values."""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from webapp import limits
from webapp.config import PREFIX, Settings
from webapp.config.values import faults
from webapp.paths import ROOT

DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
SETTINGS = {item.metadata["env"] for item in fields(Settings)}
OTHERS = {"POSTGRES_PASSWORD", "SITE"}  # of compose.yaml itself
GUIDE = (ROOT / "docs" / "guide" / "scale.md").read_text()


def procfile() -> dict[str, str]:
    lines = (ROOT / "Procfile").read_text().splitlines()
    return {name: command.strip() for name, command in (line.split(":", 1) for line in lines)}


def compose() -> dict:
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit(path: Path) -> configparser.ConfigParser:
    found = configparser.ConfigParser(interpolation=None, strict=True)
    found.optionxform = str
    found.read_string(path.read_text())
    return found


def plain(command: str) -> str:
    """A command without what its place needs: a shell around it, the doubled $, the path of the programs."""
    found = re.fullmatch(r"""(?:/bin/)?sh -c ["'](?:exec )?(.*)["']""", command)
    return (found[1] if found else command).replace("$$", "$").removeprefix("/opt/rowsmith/.venv/bin/")


def example() -> dict[str, str]:
    lines = (DEPLOY / "rowsmith.env.example").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


@pytest.mark.parametrize("name", procfile())
def test_compose_and_units_start_what_the_procfile_says(name):
    command = procfile()[name]
    assert plain(compose()["services"][name]["command"]) == command
    units = [path for path in UNITS if re.fullmatch(rf"rowsmith-{name}@?\.service", path.name)]
    assert [plain(unit(path)["Service"]["ExecStart"]) for path in units] == [command]


def test_every_unit_is_of_the_procfile():
    assert {re.fullmatch(r"rowsmith-(\w+)@?\.service", path.name)[1] for path in UNITS} == set(procfile())
    assert len(UNITS) == len(procfile())


def test_the_image_serves_as_the_procfile_says():
    text = (DEPLOY / "Dockerfile").read_text()
    command = json.loads(re.search(r"^CMD (.*)$", text, re.M)[1])
    assert command[:2] == ["sh", "-c"]
    assert command[2].removeprefix("exec ") == procfile()["web"]
    copied = re.findall(r"^COPY (.+) \S+$", text, re.M)
    assert all((ROOT / source).exists() for line in copied for source in line.split())


@pytest.mark.parametrize(
    "path", [DEPLOY / "rowsmith.env.example", DEPLOY / "compose.yaml", DEPLOY / "Dockerfile"]
)
def test_every_setting_that_is_set_exists(path):
    found = set(re.findall(r"^(?:ENV )? *([A-Z][A-Z0-9_]+)(?:=|: )", path.read_text(), re.M))
    ours = {
        name
        for name in found
        if name.startswith((PREFIX, "AWS_")) or name.endswith(("_URL", "_KEYS", "_KEY"))
    }
    assert ours - SETTINGS - OTHERS == set()
    assert ours


def test_every_setting_that_units_and_the_guide_name_exists():
    text = "\n".join(path.read_text() for path in UNITS) + GUIDE
    found = set(
        re.findall(
            rf"\b({PREFIX}[A-Z_]+|AWS_[A-Z_]+|[A-Z]+_URL|VAULT_KEYS|SECRET_KEY|TRUSTED_[A-Z]+)\b", text
        )
    )
    known = SETTINGS | {"SERVICE_API_URL"}
    assert found - known == set()


def test_the_example_holds_no_secret_and_what_it_says_fits_together(monkeypatch):
    values = example()
    assert set(values) <= SETTINGS | OTHERS
    empty = {name for name, value in values.items() if not value}
    assert empty == {
        "SECRET_KEY",
        "VAULT_KEYS",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "POSTGRES_PASSWORD",
    }
    key = "MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1ub3BxcnN0dXY="
    filled = {**values, "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz", "VAULT_KEYS": key}
    assert faults(Settings.from_env({name: filled[name] for name in filled if name in SETTINGS})) == []


def test_the_settings_of_compose_fit_together():
    """With ROWSMITH_HOSTS above 1, so that no setting may refer to a single machine."""
    own = {name: re.sub(r"\$\{[^}]*\}", "secret", value) for name, value in shared()["environment"].items()}
    values = {name: value for name, value in example().items() if name in SETTINGS}
    settings = Settings.from_env({**values, "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyz", **own})
    assert settings.hosts > 1
    subnet = compose()["networks"]["default"]["ipam"]["config"][0]["subnet"]
    assert settings.trusted_proxies == (subnet,)


def shared() -> dict:
    return compose()["x-rowsmith"]


def test_compose_names_only_what_it_has():
    found = compose()
    services, volumes = found["services"], found["volumes"]
    for name, service in services.items():
        assert "image" in service, name
        assert service["command"] if name != "bucket" else service["entrypoint"], name
        for other, when in service.get("depends_on", {}).items():
            assert other in services
            condition = when["condition"]
            if condition == "service_healthy":
                assert "healthcheck" in services[other], (name, other)
            else:
                assert (condition, services[other]["restart"]) == ("service_completed_successfully", "no")
        for volume in service.get("volumes", []):
            assert volume.split(":")[0] in volumes
    for name in procfile():
        assert services[name]["image"] == shared()["image"]
        assert int(services[name]["stop_grace_period"].rstrip("s")) > limits.STOP_SECONDS


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_unit_is_closed_as_far_as_its_part_allows(path):
    service = unit(path)["Service"]
    for name in ("NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "LockPersonality"):
        assert service[name] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == ""
    if "release" not in path.name:
        assert int(service["TimeoutStopSec"]) > limits.STOP_SECONDS
        assert service["KillMode"] == "mixed"
    runner = "runner" in path.name  # bubblewrap makes namespaces and mounts
    for name in ("RestrictNamespaces", "SystemCallFilter", "ProtectProc", "ProtectKernelTunables"):
        assert (name in service) is not runner


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_understands_a_unit(path, tmp_path):
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("systemd-analyze is not installed")
    text = path.read_text().replace("/opt/rowsmith/.venv/bin/python", "/bin/true")
    copy = tmp_path / path.name
    copy.write_text(text)
    done = subprocess.run(
        [tool, "verify", "--man=no", str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (
        done.returncode,
        [line for line in done.stderr.splitlines() if path.name.split("@")[0] in line],
    ) == (0, [])
