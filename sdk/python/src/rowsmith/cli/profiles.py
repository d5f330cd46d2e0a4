"""The service's address and the key: from a file that only its owner can read, and from the environment,
which takes precedence."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Optional

from rowsmith.cli.problems import FAILED, NOT_FOUND, Problem
from rowsmith.wire.address import not_configured, parse

DEFAULT: Final = "default"
URL, KEY, PROJECT = "SERVICE_API_URL", "SERVICE_API_KEY", "SERVICE_PROJECT_ID"
VARIABLES: Final[tuple[tuple[str, str], ...]] = (
    (URL, "URL of the service. Takes precedence over the profile."),
    (KEY, "The API key. Takes precedence over the profile."),
    (PROJECT, "ID of the project. Takes precedence over the profile."),
    ("RWS_PROFILE", "The profile, if `--profile` is not given."),
    ("RWS_CONFIG", "The file of profiles. Default: `rowsmith/config.json` in your config folder."),
    ("RWS_SERVER", "A clone of the server for `--offline`, if this Python cannot import the server."),
)
"""Environment variables of the command."""


@dataclass
class Profile:
    """A stored profile: address, key and project."""

    url: str
    key: str
    project: Optional[str] = None

    def __repr__(self) -> str:
        return f"Profile(url={self.url!r}, project={self.project!r})"


def config_file(environ: Optional[Mapping[str, str]] = None) -> Path:
    """Return the path of the profiles: $RWS_CONFIG, otherwise in $XDG_CONFIG_HOME, %APPDATA% or ~/.config."""
    env = os.environ if environ is None else environ
    if env.get("RWS_CONFIG"):
        return Path(env["RWS_CONFIG"])
    home = env.get("XDG_CONFIG_HOME") or (env.get("APPDATA") if sys.platform == "win32" else None)
    return (Path(home) if home else Path.home() / ".config") / "rowsmith" / "config.json"


class Profiles:
    """The file of profiles."""

    def __init__(self, path: Optional[Path] = None) -> None:
        self.path = path or config_file()
        held = self._read()
        self.chosen: str = held.get("profile") or DEFAULT
        self.all: dict[str, Profile] = {}
        for name, profile in (held.get("profiles") or {}).items():
            if isinstance(profile, dict):
                known = {key: profile.get(key) for key in ("url", "key", "project")}
                self.all[name] = Profile(str(known["url"]), str(known["key"]), known["project"])

    def _read(self) -> dict[str, Any]:
        try:
            found = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            raise Problem("config", f"{self.path} cannot be read: {error}", FAILED) from error
        return found if isinstance(found, dict) else {}

    def get(self, name: str) -> Profile:
        """Return a profile. Raise Problem if no profile has this name."""
        if name not in self.all:
            known = ", ".join(sorted(self.all)) or "none"
            text = f'There is no profile "{name}" (there are: {known}).'
            raise Problem("not_found", text, NOT_FOUND, ["Create one with `rowsmith login --profile NAME`."])
        return self.all[name]

    def save(self) -> None:
        """Write a new file that only its owner can read, from its first byte on."""
        held = {
            "profile": self.chosen,
            "profiles": {name: asdict(profile) for name, profile in sorted(self.all.items())},
        }
        folder = self.path.parent
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(prefix=".config.", dir=folder)  # mode 0600, as mkstemp creates files
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(held, file, indent=2, ensure_ascii=False)
                file.write("\n")
            os.replace(name, self.path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise


@dataclass
class ConnectionSettings:
    """The settings of a command, and their source."""

    url: str
    key: str
    project: Optional[str]
    source: str


def find_access(
    name: Optional[str], project: Optional[str] = None, environ: Optional[Mapping[str, str]] = None
) -> ConnectionSettings:
    """Return the settings of a command: from the environment, and from the profile if the environment does
    not set them.

    Raises ServiceError `not_configured` if a setting is missing, or if a profile's key would be sent to a
    different address than the one it was stored for.
    """
    env = os.environ if environ is None else environ
    url, key = env.get(URL, "").strip(), env.get(KEY, "").strip()
    named = name or env.get("RWS_PROFILE") or None
    wanted = project or env.get(PROJECT, "").strip() or None
    if url and key:
        return ConnectionSettings(url, key, wanted, "the environment")
    profiles = Profiles()
    called = named or profiles.chosen
    if called not in profiles.all and named is None:
        missing = " and ".join(word for word, had in (("address", url), ("key", key)) if not had)
        raise not_configured(f"There is no {missing}.")
    kept = profiles.get(called)
    if url and str(parse(url)) != str(parse(kept.url)):
        raise not_configured(
            f'The key of the profile "{called}" belongs to {kept.url}, but {URL} is {url}. Set {KEY} as well.'
        )
    own = kept.project if not key else None  # the project of a profile belongs to its key
    return ConnectionSettings(url or kept.url, key or kept.key, wanted or own, f'the profile "{called}"')
