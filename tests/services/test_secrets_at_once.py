"""Two admins set one secret at the same moment."""

from __future__ import annotations

import threading
from contextlib import suppress

from webapp.access import actors
from webapp.connections.models import Secret
from webapp.connections.services import secrets
from webapp.extensions import db


def test_two_concurrent_creations_of_one_secret_both_succeed(app, cast, monkeypatch):
    acme, both, text = (
        actors.system_actor(cast.acme, cast.main, cast.blue),
        threading.Barrier(2, timeout=10),
        [],
    )
    real = secrets._find

    def together(*args, **how):
        found = real(*args, **how)
        if found is None:
            with suppress(
                threading.BrokenBarrierError
            ):  # on SQLite the second waits for the first one's transaction
                both.wait(1)
        return found

    monkeypatch.setattr(secrets, "_find", together)

    def act(value):
        with app.app_context():
            try:
                text.append(secrets.put(acme, "token", value)[1])
            except Exception as error:
                text.append(error)
            db.session.remove()

    threads = [threading.Thread(target=act, args=(value,)) for value in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(str, text)) == ["False", "True"]
    with app.app_context():
        (stored,) = db.session.query(Secret).filter_by(name="token")
        assert secrets.decrypt(stored) in ("one", "two")
        db.session.remove()
