"""Fields of the category internet, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class ApiKeyField(Field):
    """A key for an API, such as key_test_4fX9….

    lead: What every key begins with.
    length: How many letters follow.
    """

    type_name = "api_key"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        lead: str = UNSET,
        length: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"lead": lead, "length": length})


class AppNameField(Field):
    """The name of a program for telephones or the web, such as TempoHub."""

    type_name = "app_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BundleIdField(Field):
    """The identifier of an app's package, such as com.brightriver.labs."""

    type_name = "bundle_id"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DomainNameField(Field):
    """The name of a site, under a domain that is reserved for examples.

    tld: What names end in, such as com; reserved endings if not given, so that no real site is hit.
    """

    type_name = "domain_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        tld: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"tld": tld})


class FileNameField(Field):
    """The name of a file with its extension.

    extension: One extension for all; common ones if not given.
    """

    type_name = "file_name"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        extension: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"extension": extension})


class FilePathField(Field):
    """The path of a file, as Unix or Windows writes it.

    extension: One extension for all; common ones if not given.
    system: How paths are written.
    """

    type_name = "file_path"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        extension: str | None = UNSET,
        system: Literal["unix", "windows"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"extension": extension, "system": system})


class HostnameField(Field):
    """The name of a machine, under a domain that is reserved for examples.

    domain: The domain of all machines, such as internal; sites of many names if not given.
    """

    type_name = "hostname"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        domain: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"domain": domain})


class HttpMethodField(Field):
    """The method of an HTTP request."""

    type_name = "http_method"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HttpStatusField(Field):
    """The status code of an HTTP response."""

    type_name = "http_status"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ImageUrlField(Field):
    """The web address of a picture, at a host that is reserved for examples.

    width: Width in pixels.
    height: Height in pixels.
    format: Format of the picture.
    """

    type_name = "image_url"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        width: int = UNSET,
        height: int = UNSET,
        format: Literal["jpg", "png", "gif", "webp", "svg"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"width": width, "height": height, "format": format})


class Ipv4Field(Field):
    """An IPv4 address: of the internet, of private networks, or of one network.

    cidr: The network, such as 10.20.0.0/16.
    private: Addresses of private networks (RFC 1918).
    """

    type_name = "ipv4"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        cidr: str | None = UNSET,
        private: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"cidr": cidr, "private": private})


class Ipv6Field(Field):
    """An IPv6 address, of the range for documentation (2001:db8::/32) or of one network.

    cidr: The network.
    """

    type_name = "ipv6"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        cidr: str = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"cidr": cidr})


class JwtField(Field):
    """A JSON Web Token, signed with HS256 under a secret of your own, valid from now on.

    secret: The key that signs: 32 characters or more. It is not hidden: take one for tests.
    issuer: The claim iss; none if left out.
    expires_in: Seconds from the issue, which is now, to the expiry.
    """

    type_name = "jwt"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        secret: str = UNSET,
        issuer: str | None = UNSET,
        expires_in: int = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"secret": secret, "issuer": issuer, "expires_in": expires_in})
