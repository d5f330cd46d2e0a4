"""Which URLs of users are accepted."""

from __future__ import annotations

import pytest

from webapp import limits
from webapp.net import urls


@pytest.mark.parametrize(
    "url",
    [
        "http://a b.com/",
        "http://exa mple.com:80/x",
        "http://a..b/",
        "http://.b/",
        "http://%41.com/",
        "http://a,b/",
        "http://a<b>/",
        'http://a"b/',
        "http://[::1]x/",
        "http://x[::1]/",
        "http:///x",
        "http://h:0/",
        "http://user@h/",
        "http://1.2.3/",
        "http://0x7f000001/",
        "ftp://h/",
        "//h/",
        "http://h/\n",
        " http://h/",
        "http://h\\x/",
        "http://" + "h" * limits.HTTP_URL_CHARS,
    ],
)
def test_urls_without_a_proper_host_are_rejected(url):
    assert urls.url_error(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com",
        "http://example.com./x?y=z#f",
        "http://ex_ample.internal:8080/a b",
        "http://münchen.example/x",
        "http://[::1]/",
        "http://[2001:db8::1]:8443/x",
        "http://192.0.2.1:80/",
        "http://localhost:5000/{{name}}",
    ],
)
def test_ordinary_urls_are_accepted(url):
    assert urls.url_error(url) == ""
