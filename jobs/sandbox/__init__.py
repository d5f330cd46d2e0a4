"""Programs of users, kept apart from this machine and from one another. Imports nothing of webapp.

`mode` says once how that is done here, `start` starts a program, `Boxed` is one that runs. docs/reference/sandbox.md
says what is closed; docs/adr/0017-programs-connect-by-asking.md says why it is done so.
"""

from jobs.sandbox.box import Box, Caps, Mode, Network, Setting, Unprotected, Usage
from jobs.sandbox.boxed import Boxed, start
from jobs.sandbox.modes import mode

__all__ = ["Box", "Boxed", "Caps", "Mode", "Network", "Setting", "Unprotected", "Usage", "mode", "start"]
