"""How a signed-in browser is shown."""

from __future__ import annotations

from webapp.web.responses import Output, Time


class SessionOut(Output):
    """One signed-in browser. `how` is how it came: password, link, invitation or oidc; `two_factor`: with a second
    factor. `current`: it is the one that asks."""

    id: str
    address: str
    user_agent: str
    how: str
    two_factor: bool
    created_at: Time
    last_seen_at: Time
    expires_at: Time
    current: bool
