"""`keys`: create, list and revoke API keys."""

from __future__ import annotations

from typing import Any

from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import OK
from rowsmith.cli.work import Work

SCOPES = ("read", "write", "generate", "push", "run", "secrets", "admin")


def add(root: Branch) -> None:
    """Add the command to the parser."""
    under = root.branch("keys", "Create, list and revoke API keys.")
    under.leaf("list", listed, "List the keys, without their secrets.")
    made = under.leaf("new", new, "Create a key. It is printed only once.")
    made.add_argument("name", metavar="NAME", help="Name of the key.")
    made.add_argument(
        "--scope",
        action="append",
        choices=SCOPES,
        help="Scope. Can be repeated. Default: all permissions of your role.",
    )
    made.add_argument("--expires", metavar="TIME", help="Expiry time, such as 2027-01-01T00:00:00Z.")
    made = under.leaf("revoke", revoke, "Revoke keys immediately and permanently.")
    made.add_argument("key", metavar="KEY", nargs="+", help="ID of a key.")


def listed(work: Work) -> int:
    """The keys."""
    columns = ["id", "name", "prefix", "scopes", "last_used_at", "expires_at", "revoked_at"]
    work.console.rows(work.api.api_keys.list(), columns)
    return OK


def new(work: Work) -> int:
    """Make one."""
    args = work.args
    asked: dict[str, Any] = {"name": args.name}
    if args.scope:
        asked["scopes"] = args.scope
    if args.expires:
        asked["expires_at"] = args.expires
    if args.project:
        asked["project_id"] = args.project
    made = work.api.api_keys.create(**asked)
    work.console.result(made, made["key"])
    work.console.note(f"{made['id']}: this key is not shown again.")
    return OK


def revoke(work: Work) -> int:
    """Revoke them."""
    gone = [work.api.api_keys.revoke(item) for item in work.args.key]
    work.console.rows(gone, ["id", "name", "revoked_at"])
    return OK
