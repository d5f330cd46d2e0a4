"""A provider of OpenID Connect, and an application that knows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.fakes.oidc_provider import OidcProvider


@pytest.fixture(scope="module")
def running():
    result = OidcProvider()
    yield result
    result.stop()


@pytest.fixture
def provider(running):
    running.behave()
    return running


@pytest.fixture
def more():
    """Further settings of a test's own."""
    return {}


@pytest.fixture
def settings(settings, provider, more):
    return replace(settings, **provider.settings, **more)
