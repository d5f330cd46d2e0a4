"""The running product, as the tests of the launcher start it."""

from tests.cli.conftest import start_up, up

__all__ = ["start_up", "up"]
