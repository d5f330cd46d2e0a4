"""The workspace: members, permissions and the audit log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Optional

from rowsmith.pages import Pages
from rowsmith.record import IfMatch
from rowsmith.resources.base import Key, Resource
from rowsmith.streams import split_lines

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from rowsmith import types


class Workspace(Resource):
    """`api.workspace`."""

    def get(self) -> types.WorkspaceOut:
        """The workspace."""
        return self._get("/workspace")

    def update(
        self, *, if_match: IfMatch = None, **changes: Unpack[types.WorkspacePatch]
    ) -> types.WorkspaceOut:
        """Change its name, plan, limits or settings."""
        return self._change("PATCH", "/workspace", changes, if_match)

    def delete(self, confirm: str, *, if_match: IfMatch = None) -> types.WorkspaceOut:
        """Delete the workspace with all its contents immediately. `confirm` is its name. For owners only."""
        return self._change("DELETE", "/workspace", {"confirm": confirm}, if_match)

    def trash(self, *, q: Optional[str] = None, type: Optional[str] = None) -> Pages[types.TrashedOut]:
        """List deleted objects that can be restored, of one `type` or of all types."""
        return self._list("/trash", {"q": q, "type": type})

    def used_by(self, object_id: str) -> types.UsesOut:
        """List what uses a template, dataset, scenario, connection, endpoint, file, secret, project or team."""
        return self._get("/used-by/{object_id}", object_id=object_id)

    def usage(
        self,
        *,
        by: Optional[str] = None,
        step: Optional[str] = None,
        range: Optional[str] = None,
        from_: Optional[str] = None,
        to: Optional[str] = None,
    ) -> types.UsageOut:
        """Return the limits, their current use, and the usage over time, by `project`, `template`, `key` or
        `person`, in steps of an `hour` or a `day`. `range` is `24h`, `7d` or `30d`, up to now."""
        query = {"by": by, "step": step, "range": range, "from": from_, "to": to}
        return self._get("/usage", query=query)

    def me(self) -> types.MeOut:
        """Return the owner, project and permissions of this key."""
        return self._get("/me")

    def sessions(self, *, q: Optional[str] = None) -> Pages[types.SessionOut]:
        """List the browser sessions of this key's owner. Only for keys without scopes."""
        return self._list("/me/sessions", {"q": q})

    def end_sessions(self) -> types.EndedOut:
        """Sign this key's owner out of all browsers. Only for keys without scopes."""
        return self._delete("/me/sessions")

    def end_session(self, session_id: str, *, if_match: IfMatch = None) -> types.SessionOut:
        """End one browser session. Only for keys without scopes."""
        return self._delete("/me/sessions/{session_id}", if_match, session_id=session_id)

    def audit(
        self,
        *,
        q: Optional[str] = None,
        action: Optional[str] = None,
        kind: Optional[str] = None,
        object_id: Optional[str] = None,
        user_id: Optional[str] = None,
        key_id: Optional[str] = None,
        project_id: Optional[str] = None,
        address: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
        rows_min: Optional[int] = None,
        rows_max: Optional[int] = None,
        text: Optional[str] = None,
    ) -> Pages[types.AuditOut]:
        """List audit entries that match all filters, newest first. `q` is part of the action, `text` part of
        the details."""
        texts = {"q": q, "action": action, "kind": kind, "object_id": object_id, "text": text}
        who = {"user_id": user_id, "key_id": key_id, "project_id": project_id, "address": address}
        bounds = {"since": since, "until": until, "rows_min": rows_min, "rows_max": rows_max}
        return self._list("/audit", {**texts, **who, **bounds})

    def audit_stream(self, **query: Any) -> Iterator[dict[str, Any]]:
        """Stream all entries with the same filters, for archives."""
        with self._caller.open("GET", "/audit", query={**query, "format": "jsonl"}) as answer:
            for line in split_lines(answer.pieces()):
                yield json.loads(line)

    def audit_seals(self) -> Pages[types.SealOut]:
        """List the seals of the audit log, newest first. `number` and `hash` of the first one are the head of
        the chain."""
        return self._list("/audit/seals", {})


class Members(Resource):
    """`api.members`: members and invited users."""

    def list(
        self,
        *,
        q: Optional[str] = None,
        sort: Optional[str] = None,
        team_id: Optional[str] = None,
        user_id: Optional[str] = None,
    ) -> Pages[types.MemberOut]:
        """List the members with their roles in the workspace and its teams."""
        return self._list("/members", {"q": q, "sort": sort, "team_id": team_id, "user_id": user_id})

    def add(self, *, idempotency_key: Key = None, **member: Unpack[types.MemberIn]) -> types.MemberOut:
        """Give a member of the workspace (`user_id`) a role in a team (`team_id`)."""
        return self._create("/members", member, idempotency_key)

    def get(self, member_id: str) -> types.MemberOut:
        """A member."""
        return self._get("/members/{member_id}", member_id=member_id)

    def update(self, member_id: str, role: str, *, if_match: IfMatch = None) -> types.MemberOut:
        """Change a member's role: viewer, editor, admin or owner."""
        return self._change("PATCH", "/members/{member_id}", {"role": role}, if_match, member_id=member_id)

    def remove(
        self,
        member_id: str,
        *,
        everywhere: Optional[bool] = None,
        revoke_keys: Optional[bool] = None,
        if_match: IfMatch = None,
    ) -> types.MemberOut:
        """Remove a member. `everywhere` also removes them from all teams; `revoke_keys` revokes all their
        keys."""
        query = {"everywhere": everywhere, "revoke_keys": revoke_keys}
        return self._delete("/members/{member_id}", if_match, query, member_id=member_id)

    def invitations(self, *, q: Optional[str] = None) -> Pages[types.InvitationOut]:
        """List open invitations."""
        return self._list("/invitations", {"q": q})

    def invite(
        self, *, idempotency_key: Key = None, **invitation: Unpack[types.InvitationIn]
    ) -> types.NewInvitationOut:
        """Invite someone by `email`. The response contains the link to send to them."""
        return self._create("/invitations", invitation, idempotency_key)

    def resend(self, invitation_id: str) -> types.NewInvitationOut:
        """Create a new link for an invitation. The previous link becomes invalid."""
        return self._ask("/invitations/{invitation_id}/resend", repeatable=False, invitation_id=invitation_id)

    def withdraw(self, invitation_id: str) -> types.InvitationOut:
        """Withdraw an invitation."""
        return self._delete("/invitations/{invitation_id}", invitation_id=invitation_id)


class Teams(Resource):
    """`api.teams`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.TeamOut]:
        """The teams."""
        return self._list("/teams", {"q": q})

    def get(self, team_id: str) -> types.TeamOut:
        """A team."""
        return self._get("/teams/{team_id}", team_id=team_id)

    def create(self, name: str, *, idempotency_key: Key = None) -> types.TeamOut:
        """Create a team."""
        return self._create("/teams", {"name": name}, idempotency_key)

    def update(self, team_id: str, name: str, *, if_match: IfMatch = None) -> types.TeamOut:
        """Rename a team."""
        return self._change("PATCH", "/teams/{team_id}", {"name": name}, if_match, team_id=team_id)

    def delete(self, team_id: str, *, if_match: IfMatch = None) -> types.TeamOut:
        """Delete a team without projects. It can be restored for 30 days."""
        return self._delete("/teams/{team_id}", if_match, team_id=team_id)

    def restore(self, team_id: str) -> types.TeamOut:
        """Restore a deleted object."""
        return self._ask("/teams/{team_id}/restore", team_id=team_id)


class Projects(Resource):
    """`api.projects`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.ProjectOut]:
        """List the projects that this key's owner can access."""
        return self._list("/projects", {"q": q})

    def get(self, project_id: str) -> types.ProjectOut:
        """A project."""
        return self._get("/projects/{project_id}", project_id=project_id)

    def create(self, *, idempotency_key: Key = None, **project: Unpack[types.ProjectIn]) -> types.ProjectOut:
        """Create a project: `name`, optionally `description` and `team_id`."""
        return self._create("/projects", project, idempotency_key)

    def update(
        self, project_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.ProjectPatch]
    ) -> types.ProjectOut:
        """Change name or description."""
        return self._change("PATCH", "/projects/{project_id}", changes, if_match, project_id=project_id)

    def delete(self, project_id: str, *, if_match: IfMatch = None) -> types.ProjectOut:
        """Delete a project. It can be restored for 30 days."""
        return self._delete("/projects/{project_id}", if_match, project_id=project_id)

    def restore(self, project_id: str) -> types.ProjectOut:
        """Restore a deleted object."""
        return self._ask("/projects/{project_id}/restore", project_id=project_id)

    def move(
        self, project_id: str, objects: Sequence[str], *, related: Optional[str] = None
    ) -> types.MovesOut:
        """Move objects into this project, by ID. `related` says what happens to related objects: reject the
        move and list them (`refuse`), move them too (`take`), or leave them (`leave`)."""
        body = {"objects": [*objects], **({} if related is None else {"related": related})}
        return self._ask("/projects/{project_id}/move", body, project_id=project_id)


class ApiKeys(Resource):
    """`api.api_keys`."""

    def list(
        self, *, q: Optional[str] = None, created_by: Optional[str] = None, unused: Optional[bool] = None
    ) -> Pages[types.ApiKeyOut]:
        """List the keys, without their secrets."""
        return self._list("/api-keys", {"q": q, "created_by": created_by, "unused": unused})

    def get(self, key_id: str) -> types.ApiKeyOut:
        """Return a key, without its secret."""
        return self._get("/api-keys/{key_id}", key_id=key_id)

    def create(self, *, idempotency_key: Key = None, **key: Unpack[types.ApiKeyIn]) -> types.NewApiKeyOut:
        """Create a key. The response contains it in `key`; it is not shown again."""
        return self._create("/api-keys", key, idempotency_key)

    def revoke(self, key_id: str, *, if_match: IfMatch = None) -> types.ApiKeyOut:
        """Revoke a key."""
        return self._delete("/api-keys/{key_id}", if_match, key_id=key_id)

    def revoke_all(self, created_by: str) -> types.RevokedOut:
        """Revoke all keys of a user permanently."""
        return self._delete("/api-keys", None, {"created_by": created_by})


class Secrets(Resource):
    """`api.secrets`. Values are never returned."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.SecretOut]:
        """List the names of the secrets."""
        return self._list("/secrets", {"q": q})

    def put(
        self,
        name: str,
        value: Optional[str] = None,
        *,
        allowed_hosts: Optional[Sequence[str]] = None,
        any_host: bool = False,
        project_id: Optional[str] = None,
    ) -> types.SecretOut:
        """Create or change a secret. Omitted arguments keep their values; a new secret needs a value.

        `allowed_hosts`: the hosts that connections may send it to, such as `api.example.com` or
        `*.example.com`; `any_host`: any host. `project_id`: the only project that may use it; an empty text:
        every project.
        """
        body: dict[str, Any] = {} if value is None else {"value": value}
        if allowed_hosts is not None or any_host:
            body["allowed_hosts"] = None if any_host else list(allowed_hosts or ())
        if project_id is not None:
            body["project_id"] = project_id or None
        return self._change("PUT", "/secrets/{name}", body, name=name)

    def delete(self, name: str) -> types.SecretOut:
        """Delete a secret."""
        return self._delete("/secrets/{name}", name=name)
