"""The courier: tells of work that ended, and sends what is due: deliveries to webhooks, and mails.

It runs beside the sweeper, in the sweeper's process, and keeps nothing from its work: each delivery has a thread of its
own, of which there are few, and fewer for one webhook; mails go one after the other in another. Any number of couriers
may run. What one of them has in hand when it dies is due again a little later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime

from flask import Flask
from sqlalchemy.exc import SQLAlchemyError

from webapp import clock, limits
from webapp.notifications.models import Delivery
from webapp.notifications.services import limit_notifications, mail, notifications, webhook_delivery

log = logging.getLogger(__name__)


class Courier:
    """Sends until `stop` is called."""

    def __init__(self, app: Flask, now: Callable[[], datetime] = clock.now) -> None:
        self.app, self.now = app, now
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        """Deliveries on their way, by webhook."""
        self._threads: list[threading.Thread] = []
        self._mailer: threading.Thread | None = None
        self._loop: threading.Thread | None = None

    def start(self) -> Courier:
        """Begin, in a thread of its own."""
        self._loop = threading.Thread(target=self.run, name="courier", daemon=True)
        self._loop.start()
        return self

    def stop(self) -> None:
        """Take nothing more, and give what is on its way a little time. What is cut off is sent again later."""
        self._stopping.set()
        until = time.monotonic() + limits.COURIER_STOP_SECONDS
        for thread in (self._loop, self._mailer, *self._threads):
            if thread is not None:
                thread.join(max(0.0, until - time.monotonic()))

    def run(self) -> None:
        """Turn after turn."""
        while True:
            try:
                self.turn()
            except SQLAlchemyError as error:
                log.warning("the database does not answer: %s", type(error).__name__)
            except Exception:  # whatever is wrong with one turn, there is a next one
                log.exception("a turn of the courier failed")
            if self._stopping.wait(limits.COURIER_SECONDS):
                break

    def turn(self) -> None:
        """Tell of what has ended; begin to send what is due, as far as there are hands free. Does not wait for it."""
        with self.app.app_context():
            told = notifications.tell(self.now) + limit_notifications.tell(self.now)
            if told:
                log.info("told of %d events", told)
            while not self._stopping.is_set():
                delivery = self._next()
                if delivery is None:
                    break
                self._go(delivery)
        if self._mailer is None or not self._mailer.is_alive():
            self._mailer = threading.Thread(target=self._mail, name="mail", daemon=True)
            self._mailer.start()

    def _next(self) -> Delivery | None:
        with self._lock:
            if self._busy.total() >= limits.WEBHOOK_AT_ONCE:
                return None
            full = [hook for hook, number in self._busy.items() if number >= limits.WEBHOOK_AT_ONCE_EACH]
        return webhook_delivery.claim(self.now(), full)

    def _go(self, delivery: Delivery) -> None:
        with self._lock:
            self._busy[delivery.webhook_id] += 1
        thread = threading.Thread(target=self._deliver, args=(delivery,), name="delivery", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _deliver(self, delivery: Delivery) -> None:
        try:
            with self.app.app_context():
                webhook_delivery.deliver(delivery, self.now)
        except Exception:  # its claim runs out, and it is sent again
            log.exception("delivery %s: its end was not noted", delivery.id)
        finally:
            with self._lock:
                self._busy[delivery.webhook_id] -= 1

    def _mail(self) -> None:
        try:
            with self.app.app_context():
                mail.send_due(self.now, self._stopping)
        except Exception:  # likewise
            log.exception("a mail's end was not noted")
