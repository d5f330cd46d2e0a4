"""The client for scenarios. Without arguments it reads the run's environment variables."""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Optional, Union

from rowsmith.api import required_setting
from rowsmith.error import TARGET_CODES, ServiceError, TargetError
from rowsmith.pages import Pages
from rowsmith.template import AnyTemplate, as_dict, plain
from rowsmith.wire.address import parse
from rowsmith.wire.bodies import Form
from rowsmith.wire.caller import Caller
from rowsmith.wire.retry import NONE

_UNSUCCESSFUL = frozenset({"failed", "cancelled", "timed_out"})


class ConnectionType(str, Enum):
    """The databases that `Client.create_connection` supports."""

    DB2 = "db2"
    POSTGRESQL = "postgresql"
    MYSQL = "mysql"
    MSSQL = "mssql"
    MONGODB = "mongodb"
    ORACLE = "oracle"

    def __str__(self) -> str:
        return self.value


class Client:
    """The operations of a scenario. No call is retried; a failure raises `rowsmith.error.ServiceError`.

    Arguments default to SERVICE_API_KEY, SERVICE_API_URL, SERVICE_PROJECT_ID, SERVICE_TEAM_ID and
    SERVICE_SCENARIO_ID. `run_id` is the current run (SERVICE_RUN_ID). `uploads` and `outputs` are its folders
    (SERVICE_WORKSPACE_UPLOADS and SERVICE_WORKSPACE_OUTPUTS). All three are None outside of a run. For all
    other operations use `rowsmith.Api`.
    """

    def __init__(
        self,
        api_key: Optional[str] = None,
        api_url: Optional[str] = None,
        project_id: Optional[str] = None,
        team_id: Optional[str] = None,
        scenario_id: Optional[str] = None,
        *,
        timeout: float = 300.0,
        ca_file: Optional[str] = None,
    ) -> None:
        self.project_id = project_id or os.environ.get("SERVICE_PROJECT_ID") or None
        self.team_id = team_id or os.environ.get("SERVICE_TEAM_ID") or None
        self.scenario_id = scenario_id or os.environ.get("SERVICE_SCENARIO_ID") or None
        self.run_id = os.environ.get("SERVICE_RUN_ID") or None
        self.uploads = _folder("SERVICE_WORKSPACE_UPLOADS")
        self.outputs = _folder("SERVICE_WORKSPACE_OUTPUTS")
        headers = {"X-API-Key": required_setting("key", api_key, "SERVICE_API_KEY")}
        if self.project_id:
            headers["X-Project-Id"] = self.project_id
        address = parse(required_setting("url", api_url, "SERVICE_API_URL"))
        self._caller = Caller(address, headers, retries=NONE, silent_seconds=timeout, ca_file=ca_file)

    # --- Templates and rows ---------------------------------------------------------------------------------

    def generate(self, template: AnyTemplate) -> list[dict[str, Any]]:
        """Generate `quantity` rows (default: 10) of an unsaved template. Returns either all requested rows or
        an error."""
        return _rows(self._caller.json("POST", "/generate", json=as_dict(template)))

    def generate_from_template_id(
        self, template_id: str, quantity: Optional[int] = None
    ) -> list[dict[str, Any]]:
        """Generate `quantity` rows of a saved template, or its default number of rows."""
        body = {} if quantity is None else {"count": quantity}
        path = "/templates/{template_id}/generate"
        return _rows(self._caller.json("POST", path, parts={"template_id": template_id}, json=body))

    def get_templates(self) -> list[dict[str, Any]]:
        """Return all templates of the project."""
        return self._all("/templates")

    def create_template(
        self, template_data: AnyTemplate, project_id: Optional[str] = None, team_id: Optional[str] = None
    ) -> dict[str, Any]:
        """Save a template in a project (default: the project of the run). `team_id` must be the project's
        team."""
        self._check_team(project_id, team_id)
        return self._post("/templates", as_dict(template_data), project_id)

    # --- Connections and endpoints --------------------------------------------------------------------------

    def get_connections(self) -> list[dict[str, Any]]:
        """Return all connections of the project."""
        return self._all("/connections")

    def create_connection(
        self,
        name: str,
        connection_type: Union[ConnectionType, str],
        connection_string: str,
        created_by: Optional[str] = None,
        project_id: Optional[str] = None,
        team_id: Optional[str] = None,
    ) -> dict[str, Any]:
        """Create a connection to a database.

        `connection_type` is a `rowsmith.ConnectionType` (DB2, POSTGRESQL, MYSQL, MSSQL, MONGODB or ORACLE) or
        its value, such as "postgresql". `created_by` is accepted and has no effect: a connection belongs to
        the caller.
        """
        body = {
            "name": name,
            "connection_type": str(connection_type),
            "connection_string": connection_string,
            "created_by": created_by,
            "project_id": project_id,
            "team_id": team_id,
        }
        given = {key: value for key, value in body.items() if value is not None}
        return self._post("/connections", given, project_id)

    def get_endpoints(self) -> list[dict[str, Any]]:
        """Return all endpoints of the project."""
        return self._all("/endpoints")

    def create_endpoint(self, endpoint_data: Mapping[str, Any]) -> dict[str, Any]:
        """Create an endpoint: `name`, `method`, `url` and more."""
        return self._post("/endpoints", endpoint_data)

    # --- Exports --------------------------------------------------------------------------------------------

    def export_to_database(self, export_data: Mapping[str, Any]) -> dict[str, Any]:
        """Send `rows`, or `count` rows of `template_id`, to the `table` of `connection_id`.

        Returns the push, with `counts` of delivered and failed rows: for up to 1,000 rows when it has
        finished, for more rows immediately, while it is running. A push that finishes without success raises
        ServiceError with `details["push"]`.
        """
        return _done(self._post("/export/db", export_data))

    def export_to_rest(self, export_data: Mapping[str, Any]) -> dict[str, Any]:
        """Send `rows`, or `count` rows of `template_id`, to `endpoint_id`. Returns the same as
        `export_to_database`."""
        return _done(self._post("/export/rest", export_data))

    # --- Files ----------------------------------------------------------------------------------------------

    def get_scenario_files(self) -> list[dict[str, Any]]:
        """List the files of the run, newest first: the uploads it was started with, and its own outputs.

        Outside of a run, lists all files of the workspace. A file in the run's outputs folder is stored and
        listed when the run ends; `save_file` and `create_scenario_file` store a file immediately.
        """
        return self._all("/workspace/files", {"run_id": self.run_id} if self.run_id else {})

    def read_file_by_path(self, key: str) -> bytes:
        """Return the current content of a file as bytes, by name including folders."""
        return self._read(key)

    def save_file(self, local_path: Union[str, os.PathLike[str]], folder: str = "outputs") -> dict[str, Any]:
        """Upload a local file under its own name to a folder of the workspace, immediately and not at the end
        of the run.

        A relative path that does not exist is looked up in the run's outputs folder.
        """
        path = Path(local_path)
        if not path.exists() and not path.is_absolute() and self.outputs and (self.outputs / path).exists():
            path = self.outputs / path
        name = "/".join([*(part for part in folder.split("/") if part), path.name])
        return self._upload(name, path)

    def create_scenario_file(self, name: str, content: Union[str, bytes]) -> dict[str, Any]:
        """Create a file from a text (as UTF-8) or from bytes, replacing a file with the same name."""
        return self._upload(name, content)

    def download_scenario_file(self, file_id: str) -> bytes:
        """Return the content of a file as bytes, by ID."""
        return self._read(file_id)

    # ----------------------------------------------------------------------------------------------------------

    def _all(self, path: str, query: Optional[Mapping[str, Any]] = None) -> list[dict[str, Any]]:
        pages: Pages[dict[str, Any]] = Pages(
            lambda query: self._caller.json("GET", path, query=query), dict(query or {})
        )
        return pages.all()

    def _post(self, path: str, body: Mapping[str, Any], project_id: Optional[str] = None) -> dict[str, Any]:
        headers = {"X-Project-Id": project_id} if project_id else {}
        made: dict[str, Any] = self._caller.json("POST", path, json=plain(body), headers=headers)
        return made

    def _upload(self, name: str, content: Union[str, bytes, Path]) -> dict[str, Any]:
        form = Form({"name": name}, content, file_name=name.rpartition("/")[2])
        made: dict[str, Any] = self._caller.json("POST", "/workspace/files", body=form)
        return made

    def _read(self, name: str) -> bytes:
        return self._caller.open("GET", "/workspace/files/{name:path}", parts={"name": name}).read()

    def _check_team(self, project_id: Optional[str], team_id: Optional[str]) -> None:
        """Raise an error for a team other than the project's, which would otherwise be ignored silently."""
        project = project_id or self.project_id
        if not team_id or not project or (project == self.project_id and team_id == self.team_id):
            return
        found = self._caller.json("GET", "/projects/{project_id}", parts={"project_id": project})
        if found["team_id"] != team_id:
            text = f"{project} is not a project of {team_id}."
            fault = {"path": "team_id", "code": "other_team", "message": text}
            raise ServiceError("validation_error", 422, {"fields": [fault]}, None, text)

    def __repr__(self) -> str:
        return f"Client(api_url={str(self._caller.address)!r})"


def _rows(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list):
        raise ServiceError("bad_answer", message="Rows were expected.")
    return found


def _done(push: dict[str, Any]) -> dict[str, Any]:
    if push.get("status") not in _UNSUCCESSFUL:
        return push
    error = push.get("error") or {}
    code = str(error.get("code") or push["status"])
    text = str(error.get("message") or f"The push ended as {push['status']}.")
    kind = TargetError if code in TARGET_CODES else ServiceError
    raise kind(code, 0, {"push": dict(push)}, getattr(push, "request_id", None), text)


def _folder(variable: str) -> Optional[Path]:
    found = os.environ.get(variable)
    return Path(found) if found else None
