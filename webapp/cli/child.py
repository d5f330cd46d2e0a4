"""`python -I child.py PARENT COMMAND...`: become COMMAND, and die with PARENT.

Standard library only and a few lines, because every part of `./rowsmith up` starts through it. On Linux, the kernel
enforces this also after exec, so that even `kill -9` of the parent leaves nothing running. Elsewhere, the parent stops
its children when it stops in order.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1  # prctl(2)


def main() -> None:
    """Set the signals as a shell would leave them, bind to the parent, and exec."""
    parent, command = int(sys.argv[1]), sys.argv[2:]
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL)
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)  # the parent exited before the call
    os.execvp(command[0], command)


main()
