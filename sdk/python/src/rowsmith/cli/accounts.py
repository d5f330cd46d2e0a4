"""`whoami` and `connections`: what the key sees."""

from __future__ import annotations

from rowsmith.cli.console import pairs
from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import FAILED, OK
from rowsmith.cli.work import Work


def add(root: Branch) -> None:
    """Hang them under the root."""
    root.leaf("whoami", whoami, "Show whose key is used, where, and what it may do.")
    under = root.branch("connections", "Show and try the connections of the project.")
    made = under.leaf("list", listed, "List the connections.")
    made.add_argument("--type", metavar="TYPE", help="Only those of a type, such as postgresql or odata.")
    made.add_argument("-s", "--search", metavar="TEXT", help="Only those with this in their name.")
    made = under.leaf("verify", verify, "Try a connection, stage by stage; status 1 where one fails.")
    made.add_argument("connection", metavar="CONNECTION", help="Id or name.")


def whoami(work: Work) -> int:
    """Whose key it is."""
    me = work.api.workspace.me()
    if work.console.as_json:
        work.console.result(me)
        return OK
    scopes = me["scopes"]
    told = {
        "user": f"{me['user_name']} <{me['email']}>" if me["email"] else me["user_name"],
        "role": me["role"] or me["workspace_role"],
        "service": str(work.api._caller.address),
        "workspace": me["workspace_id"],
        "project": me["project_id"],
        "key": me["key_id"],
        "scopes": ", ".join(scopes) if scopes else "all of the role",
        "plan": me["plan"],
    }
    work.console.out(pairs(told))
    return OK


def listed(work: Work) -> int:
    """The connections."""
    found = work.api.connections.list(q=work.args.search, type=work.args.type)
    work.console.rows(found, ["id", "name", "type", "environment", "read_only", "verification.status"])
    return OK


def verify(work: Work) -> int:
    """Try one."""
    found = work.api.connections.verify(work.connection(work.args.connection)["id"])
    if work.console.as_json:
        work.console.result(found)
    else:
        work.console.rows(found["stages"], ["name", "ok", "ms", "message", "hint"])
        work.console.out(found["status"])
    return OK if found["status"] == "verified" else FAILED
