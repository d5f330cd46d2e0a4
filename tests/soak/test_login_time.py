"""Promise 14, measured: a sign-in takes the same time for an unknown user as for a wrong password."""

from __future__ import annotations

import statistics
import time

import pytest

from webapp import limits
from webapp.access.models import User
from webapp.extensions import db, redis_client
from webapp.security import passwords

ROUNDS = 40
REFUSAL_SECONDS = 0.3


@pytest.fixture
def real_delay(monkeypatch):
    """The delay of the product, not that of other tests."""
    monkeypatch.setattr(limits, "LOGIN_REFUSAL_SECONDS", REFUSAL_SECONDS)


def test_same_time_for_unknown_user_and_wrong_password(app, browser, cast, real_delay):
    """Compare medians of alternating measurements, so that other load on the machine affects both equally: of the
    elapsed time, and of the processor time, which would be much smaller for an unknown user if no password were
    hashed."""
    with app.app_context():
        db.session.get_one(User, cast.edith.user_id).password_hash = passwords.hash_password(
            "another password"
        )
        db.session.commit()
    spent = {"edith@example.org": [], "nobody@example.org": []}
    visitor = browser()
    for number in range(ROUNDS + 2):
        for email, times in spent.items():
            with app.app_context():
                redis_client().flushdb()
            began = (time.perf_counter(), time.process_time())
            answer = visitor.submit("/sign-in", {"email": email, "password": "not the password"})
            if number >= 2:  # the first ones load pages
                times.append((time.perf_counter() - began[0], time.process_time() - began[1]))
            assert answer.status_code == 422
    for kind, least in enumerate((0.95, 0.8)):
        known, unknown = (statistics.median(item[kind] for item in times) for times in spent.values())
        print(
            f"{('passed', 'processor')[kind]}: known {known * 1000:.2f} ms, unknown {unknown * 1000:.2f} ms"
        )
        assert least < unknown / known < 1 / least
