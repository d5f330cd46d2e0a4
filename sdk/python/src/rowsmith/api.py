"""The whole REST API, for programs outside of scenarios: tests, pipelines, tools."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Optional

from rowsmith.resources.administration import ApiKeys, Members, Projects, Secrets, Teams, Workspace
from rowsmith.resources.catalogue import Fields, Masking, Service
from rowsmith.resources.datasets import Datasets
from rowsmith.resources.files import Files
from rowsmith.resources.scenarios import Runs, Scenarios
from rowsmith.resources.schedules import Schedules
from rowsmith.resources.targets import Connections, Endpoints
from rowsmith.resources.templates import Templates
from rowsmith.resources.webhooks import Webhooks
from rowsmith.resources.work import Exports, Pushes
from rowsmith.wire.address import not_configured, parse
from rowsmith.wire.caller import Caller
from rowsmith.wire.retry import Retries


class Api:
    """Client for one project of the service. Threads may share it; use `with` to close its connections.

    `key` and `url` default to the environment variables SERVICE_API_KEY and SERVICE_API_URL, and `project` to
    the project of the key. Calls that are safe to repeat are retried up to `retries` times after 429, 5xx and
    failed connections, but never later than `longest_wait` seconds after the failure. `timeout` limits each
    wait for the service in seconds, `connect_timeout` opening a connection, and `total_timeout` a call with
    all its attempts. `ca_file` is a PEM file of the certificate authorities to trust instead of those of the
    system.
    """

    def __init__(
        self,
        key: Optional[str] = None,
        url: Optional[str] = None,
        project: Optional[str] = None,
        *,
        retries: int = 4,
        longest_wait: float = 60.0,
        timeout: float = 300.0,
        connect_timeout: float = 10.0,
        total_timeout: Optional[float] = None,
        ca_file: Optional[str] = None,
    ) -> None:
        address = parse(required_setting("url", url, "SERVICE_API_URL"))
        if address.scheme == "http" and not address.loopback:
            raise not_configured(f"{address} would send the key unencrypted. Use https.")
        headers = {"Authorization": f"Bearer {required_setting('key', key, 'SERVICE_API_KEY')}"}
        if project:
            headers["X-Project-Id"] = project
        self._caller = caller = Caller(
            address,
            headers,
            retries=Retries(times=retries, longest_seconds=longest_wait),
            silent_seconds=timeout,
            connect_seconds=connect_timeout,
            total_seconds=total_timeout,
            ca_file=ca_file,
        )
        self.templates = Templates(caller)
        self.datasets = Datasets(caller)
        self.exports = Exports(caller)
        self.pushes = Pushes(caller)
        self.connections = Connections(caller)
        self.endpoints = Endpoints(caller)
        self.scenarios = Scenarios(caller)
        self.schedules = Schedules(caller)
        self.runs = Runs(caller)
        self.files = Files(caller)
        self.fields = Fields(caller)
        self.masking = Masking(caller)
        self.workspace = Workspace(caller)
        self.members = Members(caller)
        self.teams = Teams(caller)
        self.projects = Projects(caller)
        self.api_keys = ApiKeys(caller)
        self.secrets = Secrets(caller)
        self.webhooks = Webhooks(caller)
        self.service = Service(caller)

    def request(
        self,
        method: str,
        path: str,
        *,
        json: Any = None,
        query: Optional[Mapping[str, object]] = None,
        headers: Optional[Mapping[str, str]] = None,
        idempotency_key: Optional[str] = None,
    ) -> Any:
        """Call any route, with the same credential, retries and errors as all other methods, and return the
        JSON of the response.

        `path` is used unchanged and must be percent-encoded where necessary.
        """
        return self._caller.json(
            method, path, json=json, query=query, headers=headers, idempotency_key=idempotency_key
        )

    def close(self) -> None:
        """Close idle connections."""
        self._caller.connections.close()

    def __enter__(self) -> Api:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Api(url={str(self._caller.address)!r})"


def required_setting(name: str, given: Optional[str], variable: str) -> str:
    """Return the argument or the environment variable. Raise ServiceError `not_configured` if both are
    missing."""
    found = (given or os.environ.get(variable, "")).strip()
    if not found:
        raise not_configured(f"There is no {name}: pass it, or set {variable}.")
    return found
