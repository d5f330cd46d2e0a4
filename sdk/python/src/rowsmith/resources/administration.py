"""The workspace, who is in it, what they may do and what they did."""

from __future__ import annotations

import json
from collections.abc import Iterator
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
        return self._get("/workspace")  # type: ignore[no-any-return]

    def update(
        self, *, if_match: IfMatch = None, **changes: Unpack[types.WorkspacePatch]
    ) -> types.WorkspaceOut:
        """Change its name, plan, limits or settings."""
        return self._change("PATCH", "/workspace", changes, if_match)  # type: ignore[no-any-return]

    def usage(self) -> types.UsageOut:
        """Requests of the minute and rows of the hour, with their limits."""
        return self._get("/usage")  # type: ignore[no-any-return]

    def me(self) -> types.MeOut:
        """Whose key this is, where, and what it may do."""
        return self._get("/me")  # type: ignore[no-any-return]

    def audit(
        self,
        *,
        q: Optional[str] = None,
        action: Optional[str] = None,
        object_id: Optional[str] = None,
        user_id: Optional[str] = None,
        key_id: Optional[str] = None,
        since: Optional[str] = None,
        until: Optional[str] = None,
    ) -> Pages[types.AuditOut]:
        """What was done, newest first."""
        query = {"q": q, "action": action, "object_id": object_id, "user_id": user_id, "key_id": key_id}
        return self._list("/audit", {**query, "since": since, "until": until})

    def audit_stream(self, **query: Any) -> Iterator[dict[str, Any]]:
        """The same as one stream of all entries, for archives."""
        with self._caller.open("GET", "/audit", query={**query, "format": "jsonl"}) as answer:
            for line in split_lines(answer.pieces()):
                yield json.loads(line)


class Members(Resource):
    """`api.members`: people, and those who are invited."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.MemberOut]:
        """The members."""
        return self._list("/members", {"q": q})

    def get(self, member_id: str) -> types.MemberOut:
        """A member."""
        return self._get("/members/{member_id}", member_id=member_id)  # type: ignore[no-any-return]

    def update(self, member_id: str, role: str, *, if_match: IfMatch = None) -> types.MemberOut:
        """Give a member another role: viewer, editor, admin or owner."""
        return self._change("PATCH", "/members/{member_id}", {"role": role}, if_match, member_id=member_id)  # type: ignore[no-any-return]

    def remove(self, member_id: str, *, if_match: IfMatch = None) -> types.MemberOut:
        """Take somebody out."""
        return self._delete("/members/{member_id}", if_match, member_id=member_id)  # type: ignore[no-any-return]

    def invitations(self, *, q: Optional[str] = None) -> Pages[types.InvitationOut]:
        """The invitations that are open."""
        return self._list("/invitations", {"q": q})

    def invite(
        self, *, idempotency_key: Key = None, **invitation: Unpack[types.InvitationIn]
    ) -> types.NewInvitationOut:
        """Invite somebody by `email`; the answer has the address to give them."""
        return self._create("/invitations", invitation, idempotency_key)  # type: ignore[no-any-return]

    def withdraw(self, invitation_id: str) -> types.InvitationOut:
        """Withdraw an invitation."""
        return self._delete("/invitations/{invitation_id}", invitation_id=invitation_id)  # type: ignore[no-any-return]


class Teams(Resource):
    """`api.teams`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.TeamOut]:
        """The teams."""
        return self._list("/teams", {"q": q})

    def get(self, team_id: str) -> types.TeamOut:
        """A team."""
        return self._get("/teams/{team_id}", team_id=team_id)  # type: ignore[no-any-return]

    def create(self, name: str, *, idempotency_key: Key = None) -> types.TeamOut:
        """Make a team."""
        return self._create("/teams", {"name": name}, idempotency_key)  # type: ignore[no-any-return]

    def update(self, team_id: str, name: str, *, if_match: IfMatch = None) -> types.TeamOut:
        """Rename a team."""
        return self._change("PATCH", "/teams/{team_id}", {"name": name}, if_match, team_id=team_id)  # type: ignore[no-any-return]


class Projects(Resource):
    """`api.projects`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.ProjectOut]:
        """The projects that this key's maker sees."""
        return self._list("/projects", {"q": q})

    def get(self, project_id: str) -> types.ProjectOut:
        """A project."""
        return self._get("/projects/{project_id}", project_id=project_id)  # type: ignore[no-any-return]

    def create(self, *, idempotency_key: Key = None, **project: Unpack[types.ProjectIn]) -> types.ProjectOut:
        """Make a project: `name`, perhaps `description` and `team_id`."""
        return self._create("/projects", project, idempotency_key)  # type: ignore[no-any-return]

    def update(
        self, project_id: str, *, if_match: IfMatch = None, **changes: Unpack[types.ProjectPatch]
    ) -> types.ProjectOut:
        """Change name or description."""
        return self._change("PATCH", "/projects/{project_id}", changes, if_match, project_id=project_id)  # type: ignore[no-any-return]

    def delete(self, project_id: str, *, if_match: IfMatch = None) -> types.ProjectOut:
        """Delete a project; it can be restored for 30 days."""
        return self._delete("/projects/{project_id}", if_match, project_id=project_id)  # type: ignore[no-any-return]

    def restore(self, project_id: str) -> types.ProjectOut:
        """Take the deletion back."""
        return self._ask("/projects/{project_id}/restore", project_id=project_id)  # type: ignore[no-any-return]


class ApiKeys(Resource):
    """`api.api_keys`."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.ApiKeyOut]:
        """The keys, without their secrets."""
        return self._list("/api-keys", {"q": q})

    def get(self, key_id: str) -> types.ApiKeyOut:
        """A key, without its secret."""
        return self._get("/api-keys/{key_id}", key_id=key_id)  # type: ignore[no-any-return]

    def create(self, *, idempotency_key: Key = None, **key: Unpack[types.ApiKeyIn]) -> types.NewApiKeyOut:
        """Make a key; `key` of the answer is shown this once."""
        return self._create("/api-keys", key, idempotency_key)  # type: ignore[no-any-return]

    def revoke(self, key_id: str, *, if_match: IfMatch = None) -> types.ApiKeyOut:
        """Revoke a key."""
        return self._delete("/api-keys/{key_id}", if_match, key_id=key_id)  # type: ignore[no-any-return]


class Secrets(Resource):
    """`api.secrets`. Values never come back."""

    def list(self, *, q: Optional[str] = None) -> Pages[types.SecretOut]:
        """The names of the secrets."""
        return self._list("/secrets", {"q": q})

    def put(self, name: str, value: str) -> types.SecretOut:
        """Set a secret, new or not."""
        return self._change("PUT", "/secrets/{name}", {"value": value}, name=name)  # type: ignore[no-any-return]

    def delete(self, name: str) -> types.SecretOut:
        """Delete a secret."""
        return self._delete("/secrets/{name}", name=name)  # type: ignore[no-any-return]
