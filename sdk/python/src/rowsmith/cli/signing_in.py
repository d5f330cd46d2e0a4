"""`login` and `profiles`: credentials stored on this machine."""

from __future__ import annotations

import getpass
import os
import sys

import rowsmith
from rowsmith.cli.parser import Branch
from rowsmith.cli.problems import OK
from rowsmith.cli.profiles import KEY, URL, Profile, Profiles
from rowsmith.cli.work import Work
from rowsmith.wire.address import not_configured, parse

LOCAL = "http://127.0.0.1:8000"


def add(root: Branch) -> None:
    """Add the commands to the parser."""
    made = root.leaf(
        "login",
        login,
        "Store an address and a key for later commands.",
        "The command prompts for the key, or reads it from standard input if that is not a terminal. It "
        "tests the key and stores it in a file that only you can read.",
    )
    made.add_argument(
        "--url", help=f"URL of the service. If not given, the command prompts for it (default: {LOCAL})."
    )
    made.add_argument("--no-check", action="store_true", help="Store the key without testing it.")
    made.add_argument("--no-use", action="store_true", help="Do not make it the active profile.")
    under = root.branch("profiles", "Show, select and remove stored profiles.")
    under.leaf("list", listed, "List the profiles without their keys.")
    one = under.leaf("use", use, "Select the active profile for later commands.")
    one.add_argument("name", metavar="NAME", help="A profile.")
    one = under.leaf("rm", remove, "Remove a profile and its key from this machine. The key stays valid.")
    one.add_argument("name", metavar="NAME", help="A profile.")


def login(work: Work) -> int:
    """Prompt for address and key, test them, and store them."""
    args, kept = work.args, Profiles()
    name = args.profile or os.environ.get("RWS_PROFILE") or kept.chosen
    known = kept.all.get(name)
    url = args.url or _prompt_url(known.url if known else LOCAL)
    address = str(parse(url))
    key = _prompt_key()
    if not key:
        raise not_configured("No key was entered.")
    project = args.project
    told: dict[str, object] = {"profile": name, "url": address, "file": str(kept.path)}
    if not args.no_check:
        with rowsmith.Api(key, address, project) as api:
            me = api.workspace.me()
        told.update(user=me["user_name"], workspace_id=me["workspace_id"], project_id=me["project_id"])
    kept.all[name] = Profile(address, key, project)
    if not args.no_use:
        kept.chosen = name
    kept.save()
    who = f" as {told['user']}" if "user" in told else ""
    work.console.result(told, f'Logged in to {address}{who}; stored as profile "{name}" in {kept.path}')
    for variable in (URL, KEY):
        if os.environ.get(variable):
            work.console.note(f"{variable} in the environment takes precedence over it.")
    return OK


def _prompt_url(default: str) -> str:
    if not sys.stdin.isatty():
        return os.environ.get(URL, "").strip() or default
    sys.stderr.write(f"Address [{default}]: ")
    sys.stderr.flush()
    return sys.stdin.readline().strip() or default


def _prompt_key() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().strip()
    return getpass.getpass("API key (hidden): ").strip()


def listed(work: Work) -> int:
    """List the profiles, without their keys."""
    kept = Profiles()
    rows = [
        {"name": name, "url": profile.url, "project": profile.project, "chosen": name == kept.chosen}
        for name, profile in sorted(kept.all.items())
    ]
    work.console.rows(rows, ["name", "url", "project", "chosen"])
    return OK


def use(work: Work) -> int:
    """Choose one."""
    kept = Profiles()
    kept.get(work.args.name)
    kept.chosen = work.args.name
    kept.save()
    work.console.result({"profile": kept.chosen}, f'Later commands use "{kept.chosen}".')
    return OK


def remove(work: Work) -> int:
    """Remove one."""
    kept = Profiles()
    kept.get(work.args.name)
    del kept.all[work.args.name]
    kept.save()
    work.console.result({"removed": work.args.name}, f'Removed "{work.args.name}".')
    return OK
