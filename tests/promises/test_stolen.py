"""Promises 15 and 20, at the running product, after every feature that takes a secret has been used with a canary.

15: a stolen database, Redis or file tree holds no usable key, password, secret or token (canary strings: 0 hits).
20: a secret used by a connection or given to a run appears in no log, error, trace or audit entry of ours, also
URL-encoded or base64; in a run's own output it is cut where the workspace has turned that on.
"""

from __future__ import annotations

import re
import secrets as chance
from typing import Any

import pytest

from tests.fakes.echo_target import Answer, EchoTarget, Seen
from tests.fakes.oauth_server import OAuthServer
from tests.promises import loot
from tests.promises.product import Api, Product

FIELDS = [{"name": "id", "type": "row_number"}]


def canary(name: str) -> str:
    """Return a unique secret with characters that are escaped in URLs and in JSON."""
    return f'c4nary-{name}-{chance.token_hex(8)}/+ &"ü'


def told_back(seen: Seen) -> Answer:
    """A target that repeats all that it was sent."""
    result = [f"{name}: {value}" for name, value in seen.headers.items()]
    result += [f"{name}={value}" for name, values in seen.query.items() for value in values]
    return Answer(422, "; ".join([*result, seen.body.decode("utf-8", "replace")]))


class Used:
    """Every feature that takes a secret, used; `secrets` by what they are."""

    def __init__(self, product: Product, target: EchoTarget, oauth: OAuthServer) -> None:
        self.product, self.target, self.oauth = product, target, oauth
        self.secrets: dict[str, str] = {}
        self.answers: list[str] = []
        self.api = product.api()
        self.template = self.api.made("/templates", {"name": "Canary", "fields": FIELDS})["id"]
        self.connections()
        self.workspace()
        self.people()
        self.run = self.runs()

    def new(self, name: str) -> str:
        return self.secrets.setdefault(name, canary(name))

    def say(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        """A call whose answer must hold no canary either."""
        answer = self.api.call(method, path, **({"json": body} if body is not None else {}), **how)
        self.answers.append(answer.text)
        return answer

    def connections(self) -> None:
        """Verify and use connections to databases that do not exist, and to HTTP targets that echo requests."""
        database = {"host": "127.0.0.1", "port": 9, "username": "u", "database": "d"}
        for kind in ("postgresql", "mysql", "mssql", "oracle", "mongodb"):
            self._connection(kind, {**database, "password": self.new(kind)})
        string = chance.token_hex(12)
        self.secrets["connection string"] = string
        self._connection("postgresql", {"connection_string": f"postgresql://u:{string}@127.0.0.1:9/d"})
        auths = {
            "bearer": {"type": "bearer", "token": "c4nary-" + chance.token_hex(12)},
            "basic": {"type": "basic", "username": "u", "password": self.new("basic")},
            "header": {
                "type": "api-key",
                "in": "header",
                "name": "X-Key",
                "value": "c4nary-" + chance.token_hex(12),
            },
            "query": {"type": "api-key", "in": "query", "name": "k", "value": self.new("query")},
        }
        self.secrets |= {"bearer": auths["bearer"]["token"], "header": auths["header"]["value"]}
        oauth = {"type": "oauth2-client-credentials", "token_url": self.oauth.token_url, "client_id": "client",
                 "client_secret": self.oauth.client_secret}  # fmt: skip
        self.secrets["client_secret"] = self.oauth.client_secret
        for name, auth in {**auths, "oauth": oauth}.items():
            settings = {"base_url": self.target.url(f"/{name}"), "auth": auth, "retry": {"retries": 0}}
            result = self._connection("rest", settings)
            push = {"connection_id": result, "target": "rows", "count": 2}
            self.say("POST", f"/templates/{self.template}/push", {**push, "dry_run": True})
            pushed = self.say("POST", f"/templates/{self.template}/push", push).json()
            self.api.ended(f"/pushes/{pushed['id']}")
            for part in ("", "/rows", "/logs"):
                self.say("GET", f"/pushes/{pushed['id']}{part}")
        for number, token in enumerate(self.oauth.given):
            self.secrets[f"token {number}"] = token
        self._connection("odata", {"service_url": self.target.url("/odata"), "auth": auths["basic"]})
        self._connection("openapi", {"document_url": self.target.url("/openapi"), "auth": auths["query"]})
        key = {"api_key": self.secrets.setdefault("ai", "c4nary-" + chance.token_hex(12))}
        self._connection("ai", {"base_url": self.target.url("/ai"), "model": "m", **key})
        stored = {"name": "E", "url": self.target.url("/endpoint"), "auth": auths["basic"], "method": "POST"}
        result = self.say("POST", "/endpoints", stored).json()
        self.say("POST", "/export/rest", {"endpoint_id": result["id"], "rows": [{"id": 1}]})

    def _connection(self, kind: str, settings: dict[str, Any]) -> str:
        answer = self.say("POST", "/connections", {"name": kind, "type": kind, "settings": settings})
        assert answer.status_code == 201, answer.text
        result = answer.json()["id"]  # making it has verified it
        self.say("GET", f"/connections/{result}/metadata?refresh=true")
        self.say("PATCH", f"/connections/{result}", {"name": "again", "settings": answer.json()["settings"]})
        return result

    def workspace(self) -> None:
        """Secrets of the workspace, keys, webhooks, each also asked for twice under one Idempotency-Key."""
        self.say("PUT", "/secrets/held", {"value": self.new("old secret")})
        self.say("PUT", "/secrets/held", {"value": self.new("secret")})
        settings = {
            "base_url": self.target.url("/named"),
            "auth": {"type": "bearer", "token": "${held_token}"},
        }
        self.secrets["named"] = "c4nary-" + chance.token_hex(12)
        self.say("PUT", "/secrets/held_token", {"value": self.secrets["named"]})
        self._connection("rest", settings)
        once = {"Idempotency-Key": "stolen-1"}
        result = [self.api.made("/api-keys", {"name": "canary"}, headers=once) for _ in range(2)]
        assert result[0] == result[1]
        self.secrets["api key"] = result[0]["key"].rsplit("_", 1)[1]
        self.secrets["first key"] = self.product.key.rsplit("_", 1)[1]
        used = self.product.api(result[0]["key"])
        assert used.get("/me").status_code == 200
        hook = self.api.post(
            "/webhooks", {"url": self.target.url("/hook"), "events": ["*"]}, headers={"Idempotency-Key": "h"}
        )
        if hook.status_code == 201:
            self.secrets["webhook"] = hook.json()["secret"]
            self.say("POST", f"/webhooks/{hook.json()['id']}/test")
            self.say("GET", f"/webhooks/{hook.json()['id']}/deliveries")

    def people(self) -> None:
        """A sign-in link, a session, a password, an invitation."""
        link = self.product.command("sign-in").strip()
        self.secrets["link"] = link.rsplit("/", 1)[1]
        browser = self.product.browser()
        self.secrets["session"] = next(iter(browser.session.cookies)).value
        page = browser.session.get(f"{self.product.url}/me", timeout=30).text
        token = re.search(r'name="csrf_token"[^>]*value="([^"]+)"', page)[1]
        password = self.new("password")
        form = {"csrf_token": token, "new_password": password, "old_password": ""}
        browser.session.post(
            f"{self.product.url}/me/password", form, headers={"Origin": self.product.url}, timeout=60
        )
        wrong = {"email": "demo@example.com", "password": self.new("wrong password")}
        self.product.api("").session.post(f"{self.product.url}/sign-in", wrong, timeout=60)
        invited = self.api.made("/invitations", {"email": "guest@example.org", "role": "viewer"})
        self.secrets["invitation"] = str(
            invited.get("url") or invited.get("link") or invited.get("token")
        ).rsplit("/", 1)[1]

    def runs(self) -> dict[str, Any]:
        """A program that is given a secret and a key, and fails with both in its last line of trace."""
        code = (
            "import os\nkey = os.environ.get('SERVICE_API_KEY') or os.environ.get('DATAMAKER_API_KEY')\n"
            "raise SystemExit('given ' + os.environ['held'] + ' and ' + str(key)) if 'TELL' in os.environ else None"
        )
        body = {"name": "Canary", "code": code, "network": "api", "secrets": ["held"]}
        scenario = self.api.made("/scenarios", body)["id"]
        run = self.api.made(f"/scenarios/{scenario}/run")
        return self.api.ended(f"/scenarios/{scenario}/runs/{run['id']}")


@pytest.fixture(scope="module")
def used(product: Product):
    secret = canary("oauth")
    with EchoTarget() as target, OAuthServer(client_secret=secret) as oauth:
        target.on("*", told_back)
        yield Used(product, target, oauth)


def test_promise_15_a_stolen_database_redis_or_file_tree_holds_no_canary(used, product):
    assert len(used.secrets) > 18
    found = loot.hits(loot.everything(product), used.secrets)
    assert found == []


def test_promise_15_the_search_finds_what_is_there(used, product):
    """Values that are not secret are found in all three places, which shows that the search works."""
    public = {"a name": "Canary"}
    assert loot.hits(loot.database(product), public)
    assert loot.hits(loot.in_redis(product), {"a set of Redis": "rowsmith:alive:worker"})
    (product.data / "storage").mkdir(exist_ok=True)
    (product.data / "storage" / "probe").write_bytes(loot.forms("pr0be-of-the-search")[1])
    assert loot.hits(loot.tree(product), {"a file": "pr0be-of-the-search"}) == [
        "a file in file storage/probe"
    ]
    (product.data / "storage" / "probe").unlink()


def test_promise_20_a_secret_is_in_no_log_error_trace_or_audit_entry(used, product):
    api = used.api
    shown = [("answer", text.encode()) for text in used.answers]
    shown.append(("logs", product.logs().encode()))
    shown.append(("output of up", product.text.replace(product.key, "").encode()))
    path = "/audit?limit=100"
    while path:
        page = api.read(path)
        shown.append(("audit", api.get(path).content))
        path = f"/audit?limit=100&cursor={page['next_cursor']}" if page["next_cursor"] else ""
    lists = ("connections", "endpoints", "pushes", "runs", "secrets", "api-keys", "webhooks")
    shown += [(listed, api.get(f"/{listed}?limit=100").content) for listed in lists]
    browser, pages = product.browser(), (*lists, "audit", "status")
    shown += [(f"page {page}", browser.get(f"/{page}").content) for page in pages]
    # Where one is made it is shown, once.
    once = {"api key", "first key", "webhook", "link", "invitation", "session"}
    expected = {name: secret for name, secret in used.secrets.items() if name not in once}
    assert loot.hits(iter(shown), expected) == []
    assert len(used.target.calls()) > 10, "the targets were spoken to, with the secrets"


def test_promise_20_a_run_that_prints_its_secret_shows_it_only_in_its_log_where_it_can_be_redacted(product):
    api: Api = product.api()
    secret = "c4nary-" + chance.token_hex(12)
    assert api.call("PUT", "/secrets/told", json={"value": secret}).status_code in (200, 201)
    code = (
        "import base64, os, urllib.parse\nsecret = os.environ['told']\nprint('raw', secret)\n"
        "print('b64', base64.b64encode(secret.encode()).decode())\nprint('url', urllib.parse.quote(secret, safe=''))\n"
        "raise ValueError('the end of ' + secret)"
    )
    scenario = api.made(
        "/scenarios", {"name": "Tells", "code": code, "network": "none", "secrets": ["told"]}
    )["id"]

    def told() -> tuple[dict[str, Any], str]:
        run = api.made(f"/scenarios/{scenario}/run")["id"]
        where = f"/scenarios/{scenario}/runs/{run}"
        return api.ended(where), api.get(f"{where}/logs").text

    ended, log = told()
    assert ended["status"] == "failed"
    assert f"raw {secret}" in log, "what a program prints is its own"
    assert secret not in str(ended["error"])
    ours = [("logs", product.logs().encode()), ("audit", api.get("/audit?limit=100").content)]
    ours.append(("runs", api.get("/runs?limit=100").content))
    assert loot.hits(iter(ours), {"told": secret}) == []
    changed = api.call("PATCH", "/workspace", json={"settings": {"redact_run_logs": True}})
    assert changed.status_code == 200, changed.text
    ended, log = told()
    assert loot.hits(iter([("log", log.encode()), ("run", str(ended).encode())]), {"told": secret}) == []
    assert "raw ********" in log
