"""`whoami` and `connections`: what the key can access."""

from __future__ import annotations

from rowsmith.cli.console import pairs
from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import FAILED, OK
from rowsmith.cli.work import Work


def add(root: Branch) -> None:
    """Add the commands to the parser."""
    root.leaf("whoami", whoami, "Show the key's owner, project and permissions.")
    under = root.branch("connections", "List and test the connections of the project.")
    made = under.leaf("list", listed, "List the connections.")
    made.add_argument("--type", metavar="TYPE",
        help="Only connections of this type, such as postgresql or odata.")
    made.add_argument("-s", "--search", metavar="TEXT", help="Only names that contain this text.")
    made = under.leaf("verify", verify,
        "Test a connection stage by stage. The exit status is 1 if a stage fails.")
    made.add_argument("connection", metavar="CONNECTION", help="ID or name.")


def whoami(work: Work) -> int:
    """Show the key's owner and permissions."""
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
        "scopes": ", ".join(scopes) if scopes else "full access",
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
