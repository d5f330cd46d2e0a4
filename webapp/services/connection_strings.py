"""What may be shown of a connection string: the parts known to be harmless; all else of it is masked.

Drivers read these strings each in their own way, so nothing here tries to find the password. What is not clearly one
of the harmless parts is a secret, and a string that cannot be taken apart is one as a whole.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

MASK: Final = "********"
# Names of parts as URLs' queries, libpq, ODBC, JDBC and ADO.NET spell them, without case, spaces and signs.
_HARMLESS: Final = frozenset(
    "host hostaddr hostname server address addr datasource networkaddress port dbname database databasename"
    " initialcatalog catalog servicename sid schema currentschema user userid username uid driver protocol"
    " applicationname appname connecttimeout connectiontimeout timeout logintimeout sslmode ssl tls encrypt"
    " encryption trustservercertificate trustedconnection targetsessionattrs channelbinding clientencoding charset"
    " replicaset authsource authmechanism readpreference retrywrites w directconnection keepalives requireauth"
    " multisubnetfailover applicationintent loadbalancehosts".split()
)
_SECRET: Final = frozenset("password pwd passwd passphrase secret token sslpassword".split())
_URL: Final = re.compile(r"(?P<scheme>[A-Za-z][\w+.:-]*)://(?P<rest>[^\s]*)")
_PAIR: Final = re.compile(
    r"\s*(?P<key>[\w .-]+?)\s*=\s*(?P<value>'(?:[^'\\]|\\.)*'|\"[^\"]*\"|\{(?:[^}]|\}\})*\}|[^\s;'\"{}]*)\s*"
)


_UNREADABLE: Final = frozenset("/?#@:[] ")  # what a URL's user part may hold percent-encoded alone (RFC 3986, 3.2.1)


def shown(text: str) -> str:
    """A connection string with its secrets as `********`."""
    return _taken_apart(text)[0]


def hidden(text: str) -> list[str]:
    """The secrets of a connection string: what `shown` masks, as it stands and percent-decoded."""
    found = _taken_apart(text)[1]
    return [*found, *(plain for one in found if (plain := unquote(one)) != one)]


def is_clear(text: str) -> bool:
    """Whether every driver finds the same user, password and host in a URL: their signs are percent-encoded."""
    url = _URL.fullmatch(text.strip())
    if url is None:
        return "://" not in text
    who, at, _ = url["rest"].rpartition("@")
    user, _, password = who.partition(":")
    return not at or not _UNREADABLE.intersection(user + password)


def places(text: str, default_port: int) -> list[tuple[str, int]]:
    """The hosts and ports that a connection string leads to, as far as they can be told: URLs may name several."""
    text = text.strip()
    url = _URL.fullmatch(text)
    if url is None:
        return [
            _host_and_port(pair["value"].strip("'\"{}"), default_port)
            for pair in _PAIR.finditer(text)
            if _folded(pair["key"]) in _HOSTS
        ]
    named = re.split(r"[/?#;]", url["rest"].rpartition("@")[2], maxsplit=1)[0]
    return [_host_and_port(one, default_port) for one in named.split(",") if one]


_HOSTS: Final = frozenset("host hostaddr hostname server address addr datasource networkaddress".split())


def _host_and_port(text: str, default_port: int) -> tuple[str, int]:
    host, _, port = text.rpartition(":") if re.search(r"[^:\]]+:\d+$|\]:\d+$", text) else (text, "", "")
    return host.strip("[]"), int(port) if port else default_port


def _taken_apart(text: str) -> tuple[str, list[str]]:
    text = text.strip()
    secrets: list[str] = []
    url = _URL.fullmatch(text)
    found = _url(url["scheme"], url["rest"], secrets) if url else _pairs(text, secrets)
    return (found, [one for one in secrets if one]) if found else (MASK, [text])


def _url(scheme: str, rest: str, secrets: list[str]) -> str | None:
    # The last @ ends the user's part, whatever signs a password holds; one in the query only hides more.
    who, at, where = rest.rpartition("@")
    place, mark, query = where.partition("?")
    place, *semicolons = place.split(";")  # jdbc:sqlserver://host;user=u;password=p
    if "#" in place or "=" in place:
        return None
    user, colon, password = who.partition(":")
    if "/" in user or "?" in user:
        return None
    secrets.append(password)
    found = f"{scheme}://{user}{':' + MASK if colon else ''}{at}{place}"
    found += "".join(f";{_one(part, secrets)}" for part in semicolons if part)
    return found + (mark + "&".join(_one(part, secrets) for part in query.split("&")) if mark else "")


def _one(part: str, secrets: list[str]) -> str:
    key, equals, value = part.partition("=")
    if equals and _folded(key) in _HARMLESS:
        return part
    if equals and _folded(key) in _SECRET:
        secrets.append(value)
        return f"{key}={MASK}"
    secrets.append(part)  # a piece of a password with raw signs in it looks like this too
    return MASK


def _pairs(text: str, secrets: list[str]) -> str | None:
    """`key=value` pairs, set apart by spaces (libpq) or semicolons (ODBC). None for anything else."""
    apart = ";" if ";" in text else " "
    found, at = [], 0
    while at < len(text):
        pair = _PAIR.match(text, at)
        if pair is None or (apart == ";" and text[pair.end() : pair.end() + 1] not in ("", ";")):
            return None
        found.append(_one(f"{pair['key']}={pair['value']}", secrets))
        at = pair.end() + (apart == ";")
    return apart.join(found) or None


def _folded(key: str) -> str:
    return re.sub(r"[\s_.-]", "", key).casefold()
