"""Who watches over one program: a thread that starts it, asks ten times a second what it takes, and sees its end."""

from __future__ import annotations

import os
import select
import signal
import threading
import time
from typing import Final

from jobs.sandbox import group, outputs, users
from jobs.sandbox.box import Box, Mode, Usage
from jobs.sandbox.cell import Cell, begin
from jobs.sandbox.group import Group
from jobs.sandbox.ways import Ways

_LOOK_SECONDS: Final = 0.1
_NEAR_SECONDS: Final = 0.02  # where the memory grows towards its cap
_FOLDER_SHARE: Final = 5  # the outputs are measured for at most this part of the time


class Warden(threading.Thread):
    """The thread. The kernel binds the program's life to it: where the process of the thread is killed, so is all that
    the program has started."""

    def __init__(self, box: Box, mode: Mode, output: int) -> None:
        super().__init__(name="warden", daemon=True)
        self.box, self.mode = box, mode
        self.cell: Cell | Group | None = None
        self.stopped_by: str | None = None
        self.code: int | None = None
        self.usage = Usage()
        self.started, self.ended = threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self._output = os.dup(output)
        self._orders, self._order = os.pipe()
        self._begun = self._measured = 0.0
        self._ways = Ways(box, mode)

    def run(self) -> None:
        """From the start to the end of the program."""
        try:
            self.cell = self._begin()
        except BaseException as error:
            self.failure = error
            self.ended.set()
            return
        finally:
            os.close(self._output)
            self.started.set()
        try:
            self._watch(self.cell)
        finally:
            self.cell.kill()
            self.code = self._ended(self.cell)
            self.ended.set()

    def tell(self, number: int) -> None:
        """Have everything signalled."""
        os.write(self._order, bytes([number]))

    def close(self) -> None:
        """Let go of what it holds, once it has ended."""
        self.join()
        for one in (self._orders, self._order):
            os.close(one)
        if self.cell is not None:
            self.cell.close()

    def _begin(self) -> Cell | Group:
        box, mode = self.box, self.mode
        user = users.own() if mode.own_user else None
        if user is not None:
            os.chown(box.outputs, user, user)
            users.let_in(box.code)
            users.let_in(box.uploads)
        if mode.name == "bubblewrap":
            ways = self._ways
            return begin(box, mode, self._output, ways.serve, ways.files(user), ways.env, user)
        return group.begin(box, mode, self._output, user)

    def _watch(self, cell: Cell | Group) -> None:
        """Until the program ends or is to end."""
        poll = select.poll()
        handle = os.pidfd_open(cell.process.pid)
        poll.register(handle, select.POLLIN)
        poll.register(self._orders, select.POLLIN)
        self._ways.open(cell, poll)
        self._begun = time.monotonic()
        look = self._begun
        try:
            while self.stopped_by is None:
                now = time.monotonic()
                if now >= look:
                    self.stopped_by = self._over(cell, now - self._begun)
                    self._ways.tick()
                    look = time.monotonic() + self._pause()  # from here: questions are answered in between
                for ready, _ in poll.poll(max(0.0, look - time.monotonic()) * 1000):
                    if ready == handle or (ready == self._orders and not self._obey(cell)):
                        return
                    self._ways.ready(ready)
        finally:
            self._ways.close()
            os.close(handle)

    def _obey(self, cell: Cell | Group) -> bool:
        """Carry out orders. Returns False for the last one."""
        for number in os.read(self._orders, 64):
            if number == signal.SIGKILL:
                return False
            cell.tree.signal(number)
        return True

    def _pause(self) -> float:
        near = self.usage.memory_bytes > self.box.caps.memory_bytes // 2
        return _NEAR_SECONDS if near else _LOOK_SECONDS

    def _over(self, cell: Cell | Group, seconds: float) -> str | None:
        """The cap that is exceeded."""
        caps = self.box.caps
        self.usage = usage = cell.tree.usage(caps.memory_bytes, self._ways.memory())
        if usage.memory_bytes > caps.memory_bytes or cell.tree.kernel.too_many_locks:
            return "memory"
        if usage.processes > caps.processes:
            return "processes"
        if usage.cpu_ms > caps.cpu_seconds * 1000:
            return "cpu"
        if seconds > caps.wall_seconds:
            return "wall"
        if cell.is_full(caps.tmp_bytes):
            return "tmp"
        return "outputs" if self._outputs_over(cell.tree.nameless_bytes) else None

    def _outputs_over(self, nameless_bytes: int) -> bool:
        """Whether the outputs are too large, with `nameless_bytes` of files that were deleted and are still open.
        Looking through many files takes its time, so it is done less often."""
        now = time.monotonic()
        if now < self._measured:
            return False
        caps = self.box.caps
        size, count = outputs.size(self.box.outputs)
        took = time.monotonic() - now
        self._measured = now + took * _FOLDER_SHARE
        return size + nameless_bytes > caps.outputs_bytes or count > outputs.MOST_FILES

    def _ended(self, cell: Cell | Group) -> int:
        """The exit code; -signal where one ended it (bubblewrap says 128 + signal, as shells do)."""
        code = cell.process.returncode
        code = 128 - code if code > 128 and code - 128 in signal.valid_signals() else code
        if self.stopped_by is None and code == -signal.SIGXCPU:
            self.stopped_by = "cpu"
        return code
