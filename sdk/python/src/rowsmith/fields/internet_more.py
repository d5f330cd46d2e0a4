"""Fields of the category internet, made from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class MacAddressField(Field):
    """A MAC address of the locally administered kind, which no maker has.

    separator: Between pairs; a dot between groups of four.
    """

    type_name = "mac_address"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        separator: Literal[":", "-", "."] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"separator": separator})


class Md5Field(Field):
    """An MD5 digest: 32 hexadecimal digits.

    case: How the digits a to f are written.
    """

    type_name = "md5"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        case: Literal["lower", "upper"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"case": case})


class MimeTypeField(Field):
    """The media type of a file."""

    type_name = "mime_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PasswordField(Field):
    """A password with at least one character of each class.

    length: How many characters.
    classes: Which kinds of characters.
    """

    type_name = "password"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        length: int = UNSET,
        classes: list[Literal["lower", "upper", "digits", "symbols"]] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"length": length, "classes": classes})


class PasswordHashField(Field):
    """A hashed password as a database keeps it; no password fits it.

    algorithm: Whose form the hash has; pbkdf2_sha256 as Django writes it.
    cost: Rounds as the hash names them: bcrypt 12, argon2id 3, pbkdf2_sha256 600000 and sha512_crypt 5000
        if left out.
    """

    type_name = "password_hash"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        algorithm: Literal["bcrypt", "argon2id", "pbkdf2_sha256", "sha512_crypt"] = UNSET,
        cost: int | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"algorithm": algorithm, "cost": cost})


class PortField(Field):
    """A TCP or UDP port.

    range: system: 1 to 1023; user: 1024 to 49151; dynamic: 49152 to 65535.
    """

    type_name = "port"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        range: Literal["any", "system", "user", "dynamic"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"range": range})


class SemverField(Field):
    """A version such as 3.14.2.

    max_major: The largest major version.
    prerelease: Lets versions end in -alpha.1, -beta.2, -rc.1 and so on too.
    """

    type_name = "semver"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        max_major: int = UNSET,
        prerelease: bool = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"max_major": max_major, "prerelease": prerelease})


class Sha1Field(Field):
    """A SHA-1 digest, such as a commit's: 40 hexadecimal digits.

    case: How the digits a to f are written.
    """

    type_name = "sha1"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        case: Literal["lower", "upper"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"case": case})


class Sha256Field(Field):
    """A SHA-256 digest: 64 hexadecimal digits.

    case: How the digits a to f are written.
    """

    type_name = "sha256"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        case: Literal["lower", "upper"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"case": case})


class TldField(Field):
    """A top-level domain without its point, such as org."""

    type_name = "tld"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TokenField(Field):
    """A random token, such as of a session or a link to reset a password.

    length: How many letters.
    alphabet: What the letters are; urlsafe has - and _ too.
    """

    type_name = "token"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        length: int = UNSET,
        alphabet: Literal["alphanumeric", "urlsafe", "hex", "base32"] = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"length": length, "alphabet": alphabet})


class URLField(Field):
    """The address of a web page, under a domain that is reserved for examples.

    tld: What names end in, such as com; reserved endings if not given, so that no real site is hit.
    """

    type_name = "url"

    def __init__(
        self,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        tld: str | None = UNSET,
        **common: Unpack[Common],
    ) -> None:
        self._set(name, options, common, {"tld": tld})


class UserAgentField(Field):
    """What a browser calls itself in a request."""

    type_name = "user_agent"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
