"""Fields of the category internet, generated from the catalogue of field types: do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from rowsmith.template import UNSET, Common, Field

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Unpack


class ApiKeyField(Field):
    """An API key, such as key_test_4fX9….

    lead: Prefix of every key.
    length: Number of characters after the prefix.
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
    """The name of a mobile or web app, such as TempoHub."""

    type_name = "app_name"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class BundleIdField(Field):
    """The bundle identifier of an app, such as com.brightriver.labs."""

    type_name = "bundle_id"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class CronField(Field):
    """A schedule in the five fields of cron, such as 15 3 * * 1."""

    type_name = "cron"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DatabaseCollationField(Field):
    """A collation of a database, such as utf8mb4_bin."""

    type_name = "database_collation"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DatabaseColumnField(Field):
    """A name of a database column, such as created_at."""

    type_name = "database_column"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DatabaseEngineField(Field):
    """A storage engine of a database, such as InnoDB."""

    type_name = "database_engine"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DatabaseTypeField(Field):
    """A type of a database column, such as varchar."""

    type_name = "database_type"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class DomainNameField(Field):
    """A domain name, under a domain reserved for examples.

    tld: Top-level domain, such as com. Default: reserved ones, so that no real site is used.
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


class DomainWordField(Field):
    """A word as in a domain name, without the ending."""

    type_name = "domain_word"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FileExtensionField(Field):
    """A file extension without the dot, such as pdf."""

    type_name = "file_extension"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class FileNameField(Field):
    """The name of a file with its extension.

    extension: Extension of all files. Default: common extensions.
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
    """The path of a file on Unix or Windows.

    extension: Extension of all files. Default: common extensions.
    system: Path style.
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


class FreeEmailDomainField(Field):
    """The domain of a free mail service, for tests: all end in .example."""

    type_name = "free_email_domain"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class GitBranchField(Field):
    """The name of a git branch, such as feature/user-search."""

    type_name = "git_branch"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class GitCommitField(Field):
    """The hash of a git commit."""

    type_name = "git_commit"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class GitCommitMessageField(Field):
    """The message of a git commit, such as Fix login timeout."""

    type_name = "git_commit_message"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class HostnameField(Field):
    """A host name, under a domain reserved for examples.

    domain: Domain of all hosts, such as internal. Default: varying domains.
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


class IanaIdField(Field):
    """The number of a domain registrar."""

    type_name = "iana_id"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class ImageUrlField(Field):
    """The URL of an image, at a host reserved for examples.

    width: Width in pixels.
    height: Height in pixels.
    format: Image format.
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
    """An IPv4 address: public, private, or from one network.

    cidr: The network, such as 10.20.0.0/16.
    private: Addresses from private networks (RFC 1918).
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


class Ipv4CidrField(Field):
    """An IPv4 network with its prefix length, such as 10.4.7.0/24."""

    type_name = "ipv4_cidr"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class Ipv6Field(Field):
    """An IPv6 address from the documentation range (2001:db8::/32) or from one network.

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


class Ipv6CidrField(Field):
    """An IPv6 network with its prefix length, such as 2001:db8:4f0a:17::/64."""

    type_name = "ipv6_cidr"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class JwtField(Field):
    """A JSON Web Token, signed with HS256 and a secret that you choose, valid from now on.

    secret: Signing key: at least 32 characters. It is stored in plain text, so use a test key.
    issuer: The iss claim. Default: none.
    expires_in: Seconds from now until the token expires.
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


class JwtAlgorithmField(Field):
    """A signature algorithm of JSON Web Tokens."""

    type_name = "jwt_algorithm"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class MacAddressField(Field):
    """A locally administered MAC address, which belongs to no manufacturer.

    separator: Separator between pairs of digits; a dot separates groups of four.
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

    case: Case of the digits a to f.
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


class NetworkInterfaceField(Field):
    """A name of a network interface, such as enp3s0."""

    type_name = "network_interface"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NetworkProtocolField(Field):
    """A protocol of the internet, such as https."""

    type_name = "network_protocol"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class NicHandleField(Field):
    """A handle of a registry of domains, such as AB1234-FAKE."""

    type_name = "nic_handle"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class OperatingSystemField(Field):
    """A computer's operating system, such as Debian 12."""

    type_name = "operating_system"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class PasswordField(Field):
    """A password with at least one character from each class.

    length: Number of characters.
    classes: Character classes.
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
    """A password hash as stored in a database. No password matches it.

    algorithm: Hash algorithm. pbkdf2_sha256 has Django's format.
    cost: Cost factor in the hash. Defaults: bcrypt 12, argon2id 3, pbkdf2_sha256 600000, sha512_crypt
        5000.
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


class PlatformTokenField(Field):
    """The platform in a user agent, such as X11; Linux x86_64."""

    type_name = "platform_token"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


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


class ProgrammingLanguageField(Field):
    """A programming language, such as Python."""

    type_name = "programming_language"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class SemverField(Field):
    """A semantic version, such as 3.14.2.

    max_major: Maximum major version.
    prerelease: Includes pre-release versions such as -alpha.1, -beta.2 and -rc.1.
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

    case: Case of the digits a to f.
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

    case: Case of the digits a to f.
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
    """A top-level domain without the dot, such as org."""

    type_name = "tld"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class TokenField(Field):
    """A random token, such as for a session or a password reset link.

    length: Length of the token.
    alphabet: Characters of the token. urlsafe also includes - and _.
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


class UnixPartitionField(Field):
    """A partition of a disk, such as /dev/sda2."""

    type_name = "unix_partition"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UriPathField(Field):
    """A path of a web address, such as app/search."""

    type_name = "uri_path"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class URLField(Field):
    """The URL of a web page, under a domain reserved for examples.

    tld: Top-level domain, such as com. Default: reserved ones, so that no real site is used.
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
    """The User-Agent header of a browser."""

    type_name = "user_agent"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UserAgentChromeField(Field):
    """A user agent of Chrome."""

    type_name = "user_agent_chrome"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UserAgentEdgeField(Field):
    """A user agent of Edge, Opera or Internet Explorer mode."""

    type_name = "user_agent_edge"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UserAgentFirefoxField(Field):
    """A user agent of Firefox."""

    type_name = "user_agent_firefox"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})


class UserAgentSafariField(Field):
    """A user agent of Safari."""

    type_name = "user_agent_safari"

    def __init__(self, name: str, options: Mapping[str, Any] | None = None, **common: Unpack[Common]) -> None:
        self._set(name, options, common, {})
