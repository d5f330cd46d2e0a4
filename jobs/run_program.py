"""What a run's program is given: its box, its variables, its limits; and how this machine keeps it apart."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

from sqlalchemy import select

from jobs.run_place import Place
from jobs.sandbox import Box, Caps, Mode, Network, Setting, Unprotected, mode
from webapp import limits
from webapp.config import Settings
from webapp.extensions import reading
from webapp.models import Run, ScenarioVersion
from webapp.net import addresses

log = logging.getLogger(__name__)

COMMAND: Final = ("python3", "main.py")  # specification, Scenario runtime
NOT_PROTECTED: Final = "none"  # what a runner says of itself that can protect nothing
_PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Order:
    """A run as its runner reads it."""

    run: Run
    code: str
    pins: Mapping[str, Any]


def order(run_id: str) -> Order | None:
    """The run with its version's program; None where that is gone."""
    with reading() as session:
        run = session.get_one(Run, run_id)
        wanted = select(ScenarioVersion).where(
            ScenarioVersion.scenario_id == run.scenario_id, ScenarioVersion.number == run.scenario_version
        )
        version = session.scalar(wanted)
    return Order(run, version.spec["code"], version.pins) if version is not None else None


def protection(setting: str) -> str:
    """How this machine keeps programs apart, in a word: bubblewrap, landlock, plain, or none."""
    try:
        found = mode(cast(Setting, setting))
    except Unprotected as error:
        log.error("scenarios cannot be run here: %s", error)
        return NOT_PROTECTED
    log.info("programs run in %s: %s", found.name, found.why)
    return found.name


def protected(setting: str) -> Mode:
    """The same, to start a program with. Error: Unprotected."""
    return mode(cast(Setting, setting))


def box(settings: Settings, run: Run, place: Place, environment: Path, variables: Mapping[str, str]) -> Box:
    """All that a program is given."""
    parts = urlsplit(settings.api_url)
    return Box(
        command=COMMAND,
        code=place.code,
        environment=environment,
        read_only=(Path(sys.base_prefix),),
        uploads=place.uploads,
        outputs=place.outputs,
        env=variables,
        network=cast(Network, run.settings["network"]),
        api=(parts.hostname or "", parts.port or _PORTS[parts.scheme]),
        caps=caps(run.settings["timeout_seconds"]),
        api_source=addresses.RUNS,
    )


def caps(seconds: int) -> Caps:
    """What a program may take. Its time is the runner's to watch; the sandbox ends it a little later, should the runner
    not."""
    wall = seconds + limits.RUN_WALL_MARGIN_SECONDS
    return Caps(
        wall_seconds=wall,
        cpu_seconds=wall * limits.RUN_PROCESSORS,
        memory_bytes=limits.RUN_MEMORY_BYTES,
        processes=limits.RUN_PROCESSES,
        file_bytes=limits.RUN_FILE_BYTES,
        tmp_bytes=limits.RUN_TMP_BYTES,
        outputs_bytes=limits.RUN_OUTPUTS_BYTES,
    )


def variables(
    settings: Settings, run: Run, place: Place, key: str, secrets: Mapping[str, str]
) -> dict[str, str]:
    """The variables of a program: the scenario's, the run's parameters, its secrets, and the specification's own, which
    nothing overrides. Each of those has a twin for programs of the hosted service's clients."""
    ours = {
        "API_KEY": key,
        "API_URL": settings.api_url,
        "PROJECT_ID": run.project_id,
        "TEAM_ID": run.team_id,
        "SCENARIO_ID": run.scenario_id,
        "RUN_ID": run.id,
        "WORKSPACE_UPLOADS": str(place.uploads),
        "WORKSPACE_OUTPUTS": str(place.outputs),
    }
    twins = {**ours, "API_URL": f"{settings.api_url}/compat"}
    return {
        **run.settings["env"],
        **run.params,
        **secrets,
        **{f"SERVICE_{name}": value for name, value in ours.items()},
        **{f"DATAMAKER_{name}": value for name, value in twins.items()},
        "PYTHONUNBUFFERED": "1",
    }
