"""A document that takes forever to read."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import IO


def read(file: IO[bytes], pid_file: str) -> None:
    """Write the process id to a file when reading has begun, and do not end."""
    Path(pid_file + ".new").write_text(str(os.getpid()))
    Path(pid_file + ".new").rename(pid_file)
    time.sleep(600)
