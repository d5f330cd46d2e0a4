"""The sandbox: isolates users' programs from this machine and from each other. Imports nothing of webapp.

`mode` finds out once how programs can be isolated here, `start` starts a program, and `SandboxHandle`
controls it. docs/reference/sandbox.md describes what is blocked;
docs/adr/0017-check-each-connection-of-a-program.md gives the reasons.
"""

from jobs.sandbox.spec import Caps, Mode, Network, SandboxSpec, SandboxUnavailable, Setting, Usage
from jobs.sandbox.supervisor import SandboxHandle, mode, start

__all__ = [
    "Caps",
    "Mode",
    "Network",
    "SandboxHandle",
    "SandboxSpec",
    "SandboxUnavailable",
    "Setting",
    "Usage",
    "mode",
    "start",
]
