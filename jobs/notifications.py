"""The notifier: detects finished work, and sends webhook deliveries and e-mails that are due.

It runs in the sweeper's process without delaying it. Each delivery has its own thread, with a limit in total
and per webhook. E-mails are sent one after the other in another thread. Any number of notifiers can run. If
one dies, its deliveries become due again a little later.
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
from webapp.mail import mail
from webapp.notifications.models import Delivery
from webapp.notifications.services import limit_notifications, notifications, webhook_delivery

log = logging.getLogger(__name__)


class Courier:
    """Sends notifications until `stop` is called."""

    def __init__(self, app: Flask, now: Callable[[], datetime] = clock.now) -> None:
        self.app, self.now = app, now
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._busy: Counter[str] = Counter()
        """Deliveries in progress, by webhook."""
        self._threads: list[threading.Thread] = []
        self._mailer: threading.Thread | None = None
        self._loop: threading.Thread | None = None

    def start(self) -> Courier:
        """Start the notifier's thread."""
        self._loop = threading.Thread(target=self.run, name="courier", daemon=True)
        self._loop.start()
        return self

    def stop(self) -> None:
        """Stop and wait briefly for deliveries in progress. Interrupted deliveries are sent again later."""
        self._stopping.set()
        until = time.monotonic() + limits.COURIER_STOP_SECONDS
        for thread in (self._loop, self._mailer, *self._threads):
            if thread is not None:
                thread.join(max(0.0, until - time.monotonic()))

    def run(self) -> None:
        """Process due notifications in a loop."""
        while True:
            try:
                self.turn()
            except SQLAlchemyError as error:
                log.warning("the database does not answer: %s", type(error).__name__)
            except Exception:  # the next iteration tries again
                log.exception("the notifier failed and will try again")
            if self._stopping.wait(limits.COURIER_SECONDS):
                break

    def turn(self) -> None:
        """Create events for finished work and start due deliveries, up to the concurrency limit. Does not
        wait for them."""
        with self.app.app_context():
            told = notifications.tell(self.now) + limit_notifications.send_pending(self.now)
            if told:
                log.info("created %d events", told)
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
        self._threads = [item for item in self._threads if item.is_alive()] + [thread]
        thread.start()

    def _deliver(self, delivery: Delivery) -> None:
        try:
            with self.app.app_context():
                webhook_delivery.deliver(delivery, self.now)
        except Exception:  # its claim expires, and it is sent again
            log.exception("delivery %s: the result could not be saved", delivery.id)
        finally:
            with self._lock:
                self._busy[delivery.webhook_id] -= 1

    def _mail(self) -> None:
        try:
            with self.app.app_context():
                mail.send_due(self.now, self._stopping)
        except Exception:  # its claim expires, and it is sent again
            log.exception("the result of an e-mail could not be saved")
