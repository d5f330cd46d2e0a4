"""The page of error codes: `errors.CODES`, and for each code when it comes and what to do."""

from __future__ import annotations

from http import HTTPStatus
from types import MappingProxyType
from typing import Final

from webapp.documentation.markdown import code, table, text
from webapp.errors import CODES

ADVICE: Final = MappingProxyType(
    {
        # code: (when it comes, what to do)
        "invalid_request": (
            "The body is not JSON, or a header or a part of the URL is malformed.",
            "Correct the request. `details` contains the position of the syntax error.",
        ),
        "unsupported_version": (
            "The header `Api-Version` names a date that is no version.",
            "Send one of `details.known`, or leave the header out: the key then has the version it was made with.",
        ),
        "unauthenticated": (
            "There is no key, or one that was revoked, has expired or never was. `details.reason` says which.",
            "Send `Authorization: Bearer rws_…` with a key that holds.",
        ),
        "forbidden": (
            "The key or the role is known, and may not do this. `details.needs` names the right.",
            "Use a key with that scope, or ask an admin of the workspace for the role.",
        ),
        "https_required": (
            "The request came by plain HTTP to a service that is reached by https.",
            "Use the address with https. The key has been on the wire in the clear: make a new one.",
        ),
        "read_only_connection": (
            "Rows were to be written to a connection that is marked read-only.",
            "Take the mark off the connection, or send to another one.",
        ),
        "target_not_allowed": (
            "The address of a target is in a blocked network.",
            "Use an address of the public internet, or ask your administrator to add the network to"
            " `TARGET_NETWORKS`.",
        ),
        "not_found": (
            "The object does not exist, was deleted, or it belongs to another workspace.",
            "Check the id. What was deleted can be restored from the trash for some days.",
        ),
        "method_not_allowed": (
            "The address exists and does not take this method.",
            "Use a method of the header `Allow`.",
        ),
        "request_timeout": (
            "The headers did not arrive within 15 seconds, or the body arrived at less than 500 bytes per second.",
            "Send the request again over a faster connection. The server closes the slow connection.",
        ),
        "conflict": (
            "The name is taken, or the object is in a state that does not allow this.",
            "Take another name; `details` names the object that has it, or the state.",
        ),
        "in_use": (
            "What was to be deleted is used by others, which `details.used_by` lists.",
            "Change or delete those first.",
        ),
        "run_finished": (
            "An export, a push or a run has ended and can no longer be cancelled.",
            "Nothing: read how it ended.",
        ),
        "idempotency_in_progress": (
            "The first call with this `Idempotency-Key` is still being answered.",
            "Wait as `Retry-After` says and send the same call again: it gets the first one's answer.",
        ),
        "version_conflict": (
            "`If-Match` has an outdated ETag: the object was changed in the meantime.",
            "Read the object again, repeat the change, and send the new ETag.",
        ),
        "payload_too_large": (
            "The body is larger than this address takes; `details.max_bytes` is the limit.",
            "Send a smaller body, or upload a file if there is a route for it.",
        ),
        "uri_too_long": (
            "The address with its query is longer than `details.max_bytes`.",
            "Send the long part in the body, or request less.",
        ),
        "unsupported_media_type": (
            "The body is of a type that this address does not read.",
            "Send JSON with `Content-Type: application/json`, or the type that the API reference names.",
        ),
        "expectation_failed": (
            "The header `Expect` asks for something other than `100-continue`.",
            "Leave the header out.",
        ),
        "validation_error": (
            "The request can be read and has faults. `details.fields` lists all of them, each with its path, code,"
            " message and often a hint.",
            "Correct all values that the paths name.",
        ),
        "row_limit_exceeded": (
            "The request exceeds the number of rows per call; `details.limit` is the maximum.",
            "Ask in pieces with `offset`: the same seed gives the same rows.",
        ),
        "leak_found": (
            "The leak check found a real value in rows taken from real data, before they left. `details` names the "
            "sensitive `column`, the column it was `found_in` and the row, never the value.",
            "Mask the column that shows it as well, or take it out of the template.",
        ),
        "idempotency_mismatch": (
            "This `Idempotency-Key` came before with another request.",
            "Use a new key for a new request.",
        ),
        "driver_missing": (
            "The database driver for this kind of connection is not installed.",
            "Ask your administrator to install the extra in `details`.",
        ),
        "provider_missing": (
            "A field or a call wants a model, and the project has no connection of type `ai`.",
            "Make one; the hint says how. Any server with OpenAI's chat API will do.",
        ),
        "rate_limited": (
            "More requests in a minute than the plan has, or too many wrong passwords or keys.",
            "Wait as `Retry-After` says. The headers `X-RateLimit-*` tell how much is left.",
        ),
        "quota_exceeded": (
            "The rows of the hour, the places for waiting runs, the space for files, or the space for stored JSON"
            " (versions, variables, requests) are used up. `details` has the limit and what is used.",
            "Wait as `Retry-After` says, request fewer rows, or delete files or objects that are no longer needed.",
        ),
        "headers_too_large": (
            "The headers are too many or too long.",
            "Send fewer; a browser's cookies of other services on the same host are the usual cause.",
        ),
        "internal_error": (
            "A fault of the service. It has written down what happened under the answer's `X-Request-Id`.",
            "Try again once. Then send the request id to your administrator.",
        ),
        "not_implemented": (
            "The request uses a part of HTTP that is not understood here, such as a transfer coding.",
            "Send the body plainly, or in chunks.",
        ),
        "target_failed": (
            "A database, an API or a model answered with a refusal. `details` has its own words.",
            "Correct what they say. Verify the connection to see which stage fails.",
        ),
        "token_request_failed": (
            "The token endpoint of a connection with OAuth 2.0 did not issue a token.",
            "Check the endpoint's address, the client's id and its secret.",
        ),
        "csrf_failed": (
            "An OData service refused the CSRF token, also a fresh one.",
            "Verify the connection: it names the cause, which is mostly a lost session cookie or a proxy.",
        ),
        "unavailable": (
            "The service or one of its parts is starting, stopping or too busy.",
            "Try again after `Retry-After`.",
        ),
        "target_timeout": (
            "A target did not answer within its time.",
            "Try again, ask it for less, or raise the time limit of the connection.",
        ),
    }
)
_HEAD: Final = """\
# Error codes

Every error is one JSON object. Programs go by `code`, which never changes its meaning; messages are for people and may.

```json
{"error": {"code": "validation_error", "message": "fields[3].options.min: must be a number",
  "details": {"fields": [{"path": "fields[3].options.min", "code": "type", "message": "must be a number"}]}}}
```

Answers of 429 and 503 carry `Retry-After` in seconds, and every answer an `X-Request-Id` that finds it in the log of
the service.

"""


def page() -> str:
    """The page as Markdown: an overview, then a section for each code."""
    rows = [(f"[`{name}`](#{name})", str(status), text(said)) for name, (status, said) in CODES.items()]
    parts = [_HEAD, table(("Code", "Status", "Message"), rows)]
    for name, (status, said) in CODES.items():
        when, then = ADVICE[name]
        parts.append(
            f"\n## {code(name)}\n\n**{status} {HTTPStatus(status).phrase}.** {text(said)}\n\n"
            f"**When.** {text(when)}\n\n**What to do.** {text(then)}\n"
        )
    return "".join(parts)
