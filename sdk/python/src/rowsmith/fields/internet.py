"""Fields of the category internet, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from typing_extensions import Unpack


class DomainNameField(Field):
    """The name of a site, under a domain that is reserved for examples.

    tld: What names end in, such as com; reserved endings if not given, so that no real site is hit.
    """

    type_name = "domain_name"

    def __init__(self, name: str, *, tld: str | None = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"tld": tld})


class FileNameField(Field):
    """The name of a file with its extension.

    extension: One extension for all; common ones if not given.
    """

    type_name = "file_name"

    def __init__(self, name: str, *, extension: str | None = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"extension": extension})


class HttpMethodField(Field):
    """The method of an HTTP request."""

    type_name = "http_method"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class HttpStatusField(Field):
    """The status code of an HTTP response."""

    type_name = "http_status"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class Ipv4Field(Field):
    """An IPv4 address: of the internet, of private networks, or of one network.

    cidr: The network, such as 10.20.0.0/16.
    private: Addresses of private networks (RFC 1918).
    """

    type_name = "ipv4"

    def __init__(
        self, name: str, *, cidr: str | None = UNSET, private: bool = UNSET, **common: Unpack[Common]
    ) -> None:
        self._set(name, common, {"cidr": cidr, "private": private})


class Ipv6Field(Field):
    """An IPv6 address, of the range for documentation (2001:db8::/32) or of one network.

    cidr: The network.
    """

    type_name = "ipv6"

    def __init__(self, name: str, *, cidr: str = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"cidr": cidr})


class MacAddressField(Field):
    """A MAC address of the locally administered kind, which no maker has.

    separator: Between pairs; a dot between groups of four.
    """

    type_name = "mac_address"

    def __init__(
        self, name: str, *, separator: Literal[":", "-", "."] = UNSET, **common: Unpack[Common]
    ) -> None:
        self._set(name, common, {"separator": separator})


class MimeTypeField(Field):
    """The media type of a file."""

    type_name = "mime_type"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})


class PasswordField(Field):
    """A password with at least one character of each class.

    length: How many characters.
    classes: Which kinds of characters.
    """

    type_name = "password"

    def __init__(
        self,
        name: str,
        *,
        length: int = UNSET,
        classes: list[Literal["lower", "upper", "digits", "symbols"]] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, common, {"length": length, "classes": classes})


class URLField(Field):
    """The address of a web page, under a domain that is reserved for examples.

    tld: What names end in, such as com; reserved endings if not given, so that no real site is hit.
    """

    type_name = "url"

    def __init__(self, name: str, *, tld: str | None = UNSET, **common: Unpack[Common]) -> None:
        self._set(name, common, {"tld": tld})


class UserAgentField(Field):
    """What a browser calls itself in a request."""

    type_name = "user_agent"

    def __init__(self, name: str, **common: Unpack[Common]) -> None:
        self._set(name, common, {})
