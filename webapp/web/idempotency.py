"""Idempotency-Key on POSTs that create or run something: the first request is executed, the others get its response.

The first request claims the key by inserting a row (a unique constraint decides between requests, on any database) and
commits it. Other requests with the same key wait for a short time for its response. When the view commits its changes,
it sets the mark `acted` in the same transaction. So after a crash it is known whether anything was changed: if not, the
next request takes over the claim; if so, the response is lost and clients get an error, but nothing is done twice. A
response is kept for 24 hours, encrypted with a key derived from the client's Idempotency-Key. Errors of requests that
changed nothing are not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

import orjson
import redis
from flask import Response, current_app, request
from sqlalchemy import delete, event, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from webapp import clock, ids, limits
from webapp.access.actors import Actor
from webapp.errors import ApiError, Fault, validation_error
from webapp.extensions import changed_rows, db, reading, writing
from webapp.metering import stored_json
from webapp.security import sealing
from webapp.web.models import IdempotencyRecord

_FORM: Final = re.compile(rf"[\x21-\x7e]{{1,{limits.IDEMPOTENCY_KEY_CHARS}}}")
KEPT_HEADERS: Final = ("Content-Type", "Location", "ETag", "X-Seed", "X-Now", "X-Template-Version")


def once(actor: Actor, max_body: int, act: Callable[[], Response]) -> Response:
    """Call `act` for the first caller of this Idempotency-Key; give everybody else the first answer.

    Errors: validation_error (bad key), idempotency_mismatch, idempotency_in_progress.
    """
    key = request.headers["Idempotency-Key"]
    if not _FORM.fullmatch(key):
        message = f"Use 1 to {limits.IDEMPOTENCY_KEY_CHARS} visible ASCII characters."
        raise validation_error([Fault("Idempotency-Key", "wrong_form", message)])
    if (request.content_length or 0) > max_body:
        raise ApiError("payload_too_large", details={"max_bytes": max_body})
    claim = _Claim(actor, key)
    stored_json.check(actor)  # the answer is kept for a day
    earlier = claim.take()
    if earlier is not None:
        return claim.replay(earlier)
    session = db.session()
    event.listen(session, "before_commit", claim.mark)
    try:
        response = act()
    except ApiError as error:
        claim.failed(error)
        raise
    except BaseException:
        claim.failed(ApiError("internal_error", details={"request_id": actor.request_id}))
        raise
    finally:
        event.remove(session, "before_commit", claim.mark)
    db.session.rollback()  # the view may still read in another session
    claim.answer(response)
    return response


def _digest(told: bytes) -> str:
    """Return a digest of the given bytes and of the body: unchanged, or for multipart/form-data its parts.

    The parts of a repeated request are the same, while their boundary is not. Files are read from the disk in
    pieces.
    """
    found = hashlib.sha256(told)
    if request.mimetype != "multipart/form-data":
        found.update(request.get_data(cache=True))
        return found.hexdigest()
    found.update(repr(sorted(request.form.items(multi=True))).encode("utf-8", "surrogatepass"))
    for part, file in sorted(request.files.items(multi=True), key=lambda one: one[0]):
        content = hashlib.sha256()
        while piece := file.stream.read(limits.STORAGE_CHUNK_BYTES):
            content.update(piece)
        file.stream.seek(0)
        found.update(
            repr((part, file.filename, file.mimetype, content.digest())).encode("utf-8", "surrogatepass")
        )
    return found.hexdigest()


class _Claim:
    """One caller's hold on one key."""

    def __init__(self, actor: Actor, key: str) -> None:
        self.workspace_id = actor.workspace_id
        self.caller = actor.key_id or actor.user_id or ""
        self.key_hash = hashlib.sha256(key.encode()).hexdigest()
        told = [request.method, request.full_path, actor.project_id, request.mimetype]
        self.request_hash = _digest(repr(told).encode())
        self.seal = sealing.derive(str(current_app.secret_key), "idempotency", key + self.caller)
        self.id = ids.new("idm")

    def take(self) -> IdempotencyRecord | None:
        """None when the claim is ours; the answered record of an earlier caller otherwise."""
        until = time.monotonic() + limits.IDEMPOTENCY_WAIT_SECONDS
        while True:
            if self._insert():
                return None
            found = self._find()
            if found is None:
                continue  # it expired or was released in between
            if found.request_hash != self.request_hash:
                raise ApiError("idempotency_mismatch")
            if found.state == "answered":
                return found
            if self._forget_dead(found):
                continue
            if time.monotonic() >= until:
                details = {"state": found.state}
                raise ApiError("idempotency_in_progress", details=details, headers={"Retry-After": "5"})
            time.sleep(limits.IDEMPOTENCY_POLL_SECONDS)

    def _insert(self) -> bool:
        now = clock.now()
        try:
            with writing() as session:
                session.execute(
                    delete(IdempotencyRecord).where(*self._mine(), IdempotencyRecord.expires_at <= now)
                )
                session.add(
                    IdempotencyRecord(
                        id=self.id,
                        workspace_id=self.workspace_id,
                        caller=self.caller,
                        key_hash=self.key_hash,
                        request_hash=self.request_hash,
                        state="running",
                        created_at=now,
                        expires_at=now + timedelta(hours=limits.IDEMPOTENCY_HOURS),
                    )
                )
        except IntegrityError:
            return False
        return True

    def _mine(self) -> tuple[Any, ...]:
        table = IdempotencyRecord
        return (
            table.workspace_id == self.workspace_id,
            table.caller == self.caller,
            table.key_hash == self.key_hash,
        )

    def _find(self) -> IdempotencyRecord | None:
        with reading() as session:
            return session.scalar(select(IdempotencyRecord).where(*self._mine()))

    def _forget_dead(self, found: IdempotencyRecord) -> bool:
        """Release the claim of a caller that died before it did anything."""
        if found.state != "running":
            return False
        if clock.now() - found.created_at < timedelta(seconds=limits.IDEMPOTENCY_LOST_SECONDS):
            return False
        with writing() as session:
            session.execute(
                delete(IdempotencyRecord).where(
                    IdempotencyRecord.id == found.id, IdempotencyRecord.state == "running"
                )
            )
        return True

    def mark(self, session: Session) -> None:
        """In the view's own transaction, just before it commits: something was done."""
        statement = update(IdempotencyRecord).where(IdempotencyRecord.id == self.id).values(state="acted")
        session.execute(statement, execution_options={"synchronize_session": False})

    def failed(self, error: ApiError) -> None:
        """The view failed: release the key if nothing was changed, else keep the response."""
        db.session.rollback()  # the present one: a view that waited may have let go of the one it began with
        if not self._release():
            body = orjson.dumps(error.as_dict())
            self._keep(error.status, {"Content-Type": "application/json"}, body)

    def _release(self) -> bool:
        """Take the claim back if nothing was committed under it."""
        running = delete(IdempotencyRecord).where(
            IdempotencyRecord.id == self.id, IdempotencyRecord.state == "running"
        )
        with writing() as session:
            return bool(changed_rows(session.execute(running)))

    def answer(self, response: Response) -> None:
        """Keep the first answer."""
        if response.status_code >= 400 and self._release():
            return
        headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
        self._keep(response.status_code, headers, response.get_data())

    def _keep(self, status: int, headers: dict[str, Any], body: bytes) -> None:
        with writing() as session:
            session.execute(
                update(IdempotencyRecord)
                .where(IdempotencyRecord.id == self.id)
                .values(state="answered", status=status, headers=headers, body=sealing.seal(self.seal, body))
            )
        with contextlib.suppress(redis.RedisError):  # its purpose is fulfilled
            stored_json.add(self.workspace_id, len(body))

    def replay(self, record: IdempotencyRecord) -> Response:
        """The first answer again."""
        body = sealing.unseal(self.seal, record.body or b"")
        if body is None:  # SECRET_KEY was changed since
            raise ApiError("idempotency_in_progress", "The first answer can no longer be read.")
        response = Response(body, status=record.status)
        response.headers.update(record.headers or {})
        response.headers["Idempotent-Replayed"] = "true"
        return response
