"""The internet: sites, browsers, passwords, files, network addresses (IPv4, IPv6, MAC), hosts and software."""

from __future__ import annotations

import ipaddress
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.text_parts import FEW_ROWS, PoolPart, join_parts
from webapp.engine.types.base import IndexedType, OptionsModel, PoolType, max_text_length
from webapp.engine.types.codes import (
    DIGITS,
    HEX,
    LOWER,
    UPPER,
    Code,
    CodePart,
    CodeType,
    Pick,
    Run,
    strings_from_matrix,
)
from webapp.engine.types.company import Companies, get_domain_suffixes, locale_and_tld, max_domain_length
from webapp.engine.types.joining import digit_table

if TYPE_CHECKING:
    from webapp.engine.blocks import ColumnContext
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec


# RFC 2606, sections 2 and 3: a top-level domain and three domains that never belong to anyone.
RESERVED_ENDINGS = (".example", ".example.com", ".example.net", ".example.org")
_TLD = re.compile(r"\.?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*)", re.I)

_SCHEME = "https://"

_SYMBOLS = "!#$%&*+-=?@^_"
_Class = Literal["lower", "upper", "digits", "symbols"]
_CLASSES: dict[_Class, str] = {"lower": LOWER, "upper": UPPER, "digits": DIGITS, "symbols": _SYMBOLS}
_END_SALT, _ROTATION_SALT = 59, 60


def is_domain_suffix(text: str) -> bool:
    """Whether a domain name may end in ``text``, with or without a full stop before it."""
    return _TLD.fullmatch(text) is not None


class DomainName(IndexedType):
    """Two words, perhaps a third after a hyphen, under a domain that is reserved for examples or under ``tld``; in a
    group the name of the row's company."""

    name = "domain_name"
    label = "Domain Name"
    category = "internet"
    description = "A domain name, under a domain reserved for examples."
    aliases: ClassVar[tuple[str, ...]] = ("domain", "website domain", "site", "safe domain name")
    example = "brightriver-labs.example"
    group_kind = "company"
    requires_named_group = True
    joins_existing_groups_only = True
    dtype = pa.string()

    class Options(OptionsModel):
        tld: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description=(
                "Top-level domain, such as com. Default: reserved ones, so that no real site is used."
            ),
            examples=["com"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.tld is not None and not is_domain_suffix(options.tld):
            text = f'"{options.tld}" is not a valid top-level domain.'
            compiler.fault(field, "options.tld", "wrong_format", text, "Use a value such as com or co.uk.")
        vocabulary = compiler.vocabulary
        endings = RESERVED_ENDINGS if options.tld is None else (f".{options.tld.lower().lstrip('.')}",)
        self._names = vocabulary.words("site_name")
        self._end_texts = vocabulary.cached(
            ("site ends", endings), lambda: _build_site_ends(vocabulary, endings)
        )
        self._ending_count = len(endings)
        self.max_length = vocabulary.cached("longest site", lambda: max_text_length(self._names))
        self.max_length += vocabulary.cached(
            ("longest end", endings), lambda: max_text_length(self._end_texts)
        )
        self.size = len(self._names) * len(self._end_texts)
        self._sites = None
        if field.group:
            locale, end = locale_and_tld(compiler.fields_of_same_group(field), compiler)
            self._sites = get_domain_suffixes(vocabulary, locale, end)
            self.max_length = max_domain_length(vocabulary, locale, end)

    def fill(self, context: ColumnContext) -> pa.Array:
        return super().fill(context) if self._sites is None else join_parts(*self.company_parts(context))

    def company_parts(self, context: ColumnContext) -> tuple[PoolPart, ...]:
        """The site of the row's company."""
        company = context.group(Companies)
        return (company.words.site_heads, company.head), (self._sites, company.tail)

    def distinct_count(self) -> int | None:
        return super().distinct_count() if self._sites is None else None

    def unique_hint(self) -> str:
        return (
            "The value must match the company, and two companies may share a site: set a separate "
            "group for the field."
        )

    def draw(self, context: ColumnContext) -> np.ndarray:
        # Half of the names have no third word.
        end = context.below(2 * len(self._end_texts), _END_SALT)
        end = np.where(end < np.uint64(len(self._end_texts)), end, end % np.uint64(self._ending_count))
        return end * np.uint64(len(self._names)) + context.below(len(self._names))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*self.parts(index))

    def parts(self, index: np.ndarray) -> tuple[PoolPart, PoolPart]:
        """Name and ending of the sites number ``index``."""
        names = np.uint64(len(self._names))
        end = index // names
        return (self._names, index - end * names), (self._end_texts, end)


def _build_site_ends(vocabulary: Vocabulary, endings: tuple[str, ...]) -> pa.Array:
    kinds = ["", *(f"-{kind}" for kind in vocabulary.words("site_kind").to_pylist())]
    return pa.array([kind + ending for kind in kinds for ending in endings])


class Url(DomainName):
    """A page of a site of `DomainName`; unique values differ in the site."""

    name = "url"
    label = "URL"
    description = "The URL of a web page, under a domain reserved for examples."
    aliases = ("uri", "web address", "website", "link", "web page")
    example = "https://brightriver-labs.example/articles/17"

    def __init__(self, field: FieldSpec, options: DomainName.Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self._pages = vocabulary.cached("pages", lambda: _pages(vocabulary))
        self._names = vocabulary.cached(
            "secure sites",
            lambda: pc.binary_join_element_wise(_SCHEME, vocabulary.words("site_name"), ""),
        )
        assert self.max_length is not None  # a domain name's is known
        self.max_length += len(_SCHEME) + vocabulary.cached(
            "longest page", lambda: max_text_length(self._pages)
        )

    def company_parts(self, context: ColumnContext) -> tuple[PoolPart, ...]:
        company = context.group(Companies)
        page = self._pages, context.below(len(self._pages), 1)
        return (company.words.url_prefixes, company.head), (self._sites, company.tail), page

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*self.parts(index), (self._pages, context.below(len(self._pages), 1)))


def _pages(vocabulary: Vocabulary) -> pa.Array:
    pages = vocabulary.words("site_page").to_pylist()
    return pa.array(
        ["/", *(f"/{page}" for page in pages), *(f"/{page}/{i}" for i in range(1, 100) for page in pages)]
    )


class Password(CodeType):
    """Characters of the classes, at least one of each. The positions of the required ones differ from row to row."""

    name = "password"
    label = "Password"
    category = "internet"
    description = "A password with at least one character from each class."
    aliases = ("secret", "pwd", "passphrase")
    example = "wR7#kfT2_mQz9b+A"

    class Options(OptionsModel):
        length: int = Field(16, ge=1, le=limits.MAX_CODE_CHARS, description="Number of characters.")
        classes: tuple[_Class, ...] = Field(tuple(_CLASSES), min_length=1, description="Character classes.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        classes = tuple(name for name in _CLASSES if name in options.classes)
        if len(classes) > options.length:
            text = f"{options.length} characters are too few for {len(classes)} classes."
            compiler.fault(
                field, "options.length", "too_short", text, "Use more characters or fewer classes."
            )
            return
        all_characters = "".join(_CLASSES[name] for name in classes)
        per_class = options.length // len(classes)
        parts: list[Run] = []
        for name in classes:
            parts.append(Run(_CLASSES[name]))
            if per_class > 1:
                parts.append(Run(all_characters, per_class - 1))
        rest = options.length - per_class * len(classes)
        if rest:
            parts.append(Run(all_characters, rest))
        key = ("password", options.length, classes)
        self.use(compiler.vocabulary.cached(key, lambda: Code(*parts)))

    def fill(self, context: ColumnContext) -> pa.Array:
        matrix = self.code.bytes(self.code.draw(context))
        width = self.code.width
        places = _rotations(width).take(context.below(width, _ROTATION_SALT).view(np.int64), axis=0)
        places += np.arange(0, matrix.size, width)[:, None]
        return strings_from_matrix(matrix.ravel().take(places))

    def fill_unique(self, context: ColumnContext) -> pa.Array:
        # Rotated texts could be the same; in their fixed order all differ.
        return self.code.text(self.code.draw_unique(context))


@lru_cache(maxsize=64)
def _rotations(width: int) -> np.ndarray:
    """``int64[width, width]``: places of a text's characters after each rotation."""
    return (np.arange(width) + np.arange(width)[:, None]) % width


class UserAgent(PoolType):
    """User-Agent headers of recent browsers."""

    name = "user_agent"
    label = "User Agent"
    category = "internet"
    description = "The User-Agent header of a browser."
    aliases = (
        "useragent",
        "browser",
        "browser user agent",
        "android platform token",
        "linux user agent",
        "chrome user agent",
    )
    example = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(compiler.vocabulary.words("user_agent"))


class HttpMethod(PoolType):
    """Methods of RFC 9110, section 9, and PATCH (RFC 5789)."""

    name = "http_method"
    label = "HTTP Method"
    category = "internet"
    description = "The method of an HTTP request."
    aliases = ("request method", "http verb")
    example = "GET"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(_methods())


@cache
def _methods() -> pa.Array:
    return pa.array(["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"])


class HttpStatus(PoolType):
    """Status codes of RFC 9110, section 15, and 429 (RFC 6585)."""

    name = "http_status"
    label = "HTTP Status"
    category = "internet"
    description = "The status code of an HTTP response."
    aliases = ("http status code", "status code", "response code")
    example = 200

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self.set_pool(_statuses())


@cache
def _statuses() -> pa.Array:
    success, redirects = [200, 201, 202, 204, 206], [301, 302, 303, 304, 307, 308]
    client_errors = [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 422, 429]
    return pa.array([*success, *redirects, *client_errors, 500, 501, 502, 503, 504], pa.int64())


class MimeType(PoolType):
    """Media types of common files (RFC 6838)."""

    name = "mime_type"
    label = "MIME Type"
    category = "internet"
    description = "The media type of a file."
    aliases = ("media type", "content type")
    example = "application/pdf"

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self.set_pool(
            vocabulary.cached(
                "mime types", lambda: vocabulary.table("file_kind")["mime_type"].combine_chunks()
            )
        )


class FileName(IndexedType):
    """A word, a number and an extension."""

    name = "file_name"
    label = "File Name"
    category = "internet"
    description = "The name of a file with its extension."
    aliases: ClassVar[tuple[str, ...]] = ("filename", "file")
    example = "report-0417.pdf"
    dtype = pa.string()

    class Options(OptionsModel):
        extension: str | None = Field(
            None,
            max_length=20,
            pattern=r"^\.?[A-Za-z0-9]+$",
            description="Extension of all files. Default: common extensions.",
            examples=["pdf"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary, extension = compiler.vocabulary, options.extension
        self._stems = vocabulary.words("file_stem")
        self._end_texts = vocabulary.cached(
            ("file ends", extension), lambda: _build_file_ends(vocabulary, extension)
        )
        self._numbers = digit_table(4, "-")
        self._names_per_ending = len(self._stems) * len(self._numbers)
        self.size = self._names_per_ending * len(self._end_texts)
        self.max_length = (
            max_text_length(self._stems) + max_text_length(self._numbers) + max_text_length(self._end_texts)
        )

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*self.parts(index))

    def parts(self, index: np.ndarray) -> tuple[PoolPart, ...]:
        """Word, number and extension of the files number ``index``."""
        end = index // np.uint64(self._names_per_ending)
        rest = index - end * np.uint64(self._names_per_ending)
        stem = rest // np.uint64(len(self._numbers))
        number = rest - stem * np.uint64(len(self._numbers))
        return (self._stems, stem), (self._numbers, number), (self._end_texts, end)


def _build_file_ends(vocabulary: Vocabulary, extension: str | None) -> pa.Array:
    extensions = (
        vocabulary.table("file_kind")["extension"].to_pylist()
        if extension is None
        else [extension.lstrip(".")]
    )
    return pa.array([f".{name}" for name in extensions])


_SIXTEEN = np.uint64(16)
_LOW = np.uint64(0xFFFF)

# RFC 1918.
_PRIVATE = (("10.0.0.0", 1 << 24), ("172.16.0.0", 1 << 20), ("192.168.0.0", 1 << 16))

# IANA IPv4 Special-Purpose Address Registry (RFC 6890): what is not for hosts of the internet. Blocks smaller than a
# /16 take the /16 that contains them out of the draw.
_SPECIAL = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/16",
    "192.31.0.0/16", "192.52.0.0/16", "192.88.0.0/16", "192.168.0.0/16", "192.175.0.0/16", "198.18.0.0/15",
    "198.51.0.0/16", "203.0.0.0/16", "224.0.0.0/3",
)  # fmt: skip


@cache
def _byte_pairs(separator: str) -> pa.Array:
    """Return the texts ``0.0`` to ``255.255``, followed by ``separator``."""
    numbers = pa.array(np.arange(256)).cast(pa.string())
    high = numbers.take(pa.array(np.repeat(np.arange(256), 256)))
    low = numbers.take(pa.array(np.tile(np.arange(256), 256)))
    return pc.binary_join_element_wise(high, ".", low, separator, "")


def ipv4_text(numbers: np.ndarray) -> pa.Array:
    """``uint64[n]`` below 2**32 in dotted form."""
    if numbers.size <= FEW_ROWS:
        dotted = [f"{n >> 24}.{n >> 16 & 255}.{n >> 8 & 255}.{n & 255}" for n in numbers.tolist()]
        return pa.array(dotted, pa.string())
    return join_parts((_byte_pairs("."), numbers >> _SIXTEEN), (_byte_pairs(""), numbers & _LOW))


@cache
def _public_prefixes() -> np.ndarray:
    """``uint64[k]``: the upper sixteen bits of addresses that hosts of the internet may have."""
    reserved = np.zeros(1 << 16, bool)
    for block in map(ipaddress.IPv4Network, _SPECIAL):
        first = int(block.network_address) >> 16
        reserved[first : first + (1 << (16 - block.prefixlen))] = True
    return np.flatnonzero(~reserved).astype(np.uint64)


class Ipv4(IndexedType):
    """Addresses of a network, or private ones (RFC 1918), or public ones."""

    name = "ipv4"
    label = "IPv4"
    category = "internet"
    description = "An IPv4 address: public, private, or from one network."
    aliases = (
        "ip",
        "ip address",
        "ip address v4",
        "ipv4 address",
        "ip v4",
        "inet",
        "ipv4 private",
        "ipv4 public",
    )
    example = "81.204.17.93"
    dtype = pa.string()
    max_length = 15

    class Options(OptionsModel):
        cidr: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="The network, such as 10.20.0.0/16.",
            examples=["10.20.0.0/16"],
        )
        private: bool = Field(False, description="Addresses from private networks (RFC 1918).")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._network: tuple[int, int] | None = None
        if options.cidr is not None:
            if options.private:
                text = "private cannot be combined with cidr."
                compiler.fault(field, "options.private", "conflict", text, "Set cidr or private, not both.")
            self._network = _host_range(field, options.cidr, compiler)
        if self._network:
            self.size = self._network[1]
        else:
            self.size = (
                sum(size for _, size in _PRIVATE) if options.private else _public_prefixes().size << 16
            )

    @classmethod
    def capacity(cls) -> int:
        return _public_prefixes().size << 16

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        if self._network:
            return ipv4_text(index + np.uint64(self._network[0]))
        if not self.options.private:
            return ipv4_text((_public_prefixes()[index >> _SIXTEEN] << _SIXTEEN) | (index & _LOW))
        numbers, count = index, 0
        for first, size in _PRIVATE:
            start = np.uint64((int(ipaddress.IPv4Address(first)) - count) % (1 << 64))
            numbers = np.where(index >= np.uint64(count), index + start, numbers)
            count += size
        return ipv4_text(numbers)


def _host_range(field: FieldSpec, cidr: str, compiler: Compiler) -> tuple[int, int] | None:
    """First address and number of addresses of a network, without its own and the broadcast address."""
    try:
        network = ipaddress.IPv4Network(cidr.strip(), strict=False)
    except ValueError:
        text = f'"{cidr}" is not an IPv4 network.'
        compiler.fault(field, "options.cidr", "wrong_format", text, "Use a value such as 10.20.0.0/16.")
        return None
    first, size = int(network.network_address), network.num_addresses
    return (first + 1, size - 2) if network.prefixlen <= 30 else (first, size)


class Ipv6(CodeType):
    """Addresses in the canonical form of RFC 5952. Drawn groups have four digits and do not begin with 0, so that
    nothing is left out of them."""

    name = "ipv6"
    label = "IPv6"
    category = "internet"
    description = "An IPv6 address from the documentation range (2001:db8::/32) or from one network."
    aliases = ("ip address v6", "ipv6 address", "ip v6", "inet6")
    example = "2001:db8:7c4d:91e0:a3f2:5b18:c6d7:2e4f"

    class Options(OptionsModel):
        cidr: str = Field(
            "2001:db8::/32",
            max_length=limits.MAX_NAME_CHARS,
            description="The network.",
            examples=["fd12:3456::/32"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        try:
            network = ipaddress.IPv6Network(options.cidr.strip(), strict=False)
        except ValueError:
            text = f'"{options.cidr}" is not an IPv6 network.'
            compiler.fault(field, "options.cidr", "wrong_format", text, "Use a value such as 2001:db8::/32.")
            return
        self.use(compiler.vocabulary.cached(("ipv6", str(network)), lambda: _ipv6(network)))


def _ipv6(network: ipaddress.IPv6Network) -> Code:
    address, groups = int(network.network_address), []
    for place in range(8):
        value = address >> (112 - 16 * place) & 0xFFFF
        free_bits = min(16, max(0, 16 * place + 16 - network.prefixlen))
        groups.append(f"{value:x}" if not free_bits else Pick(_widest_groups(value, free_bits)))
    return Code(*_join_groups(groups))


@lru_cache(maxsize=32)
def _widest_groups(first: int, bits: int) -> tuple[str, ...]:
    """Return the texts with the most digits of the groups whose last ``bits`` are free."""
    texts = [f"{value:x}" for value in range(first, first + (1 << bits))]
    return tuple(text for text in texts if len(text) == len(texts[-1]))


def _join_groups(groups: list[str | Pick]) -> list[CodePart]:
    """Groups with colons; the longest run of two or more fixed zeros, the first of equals, as two colons."""
    zero = [group == "0" for group in groups]
    runs = [(start, end) for start in range(8) for end in range(start + 2, 9) if all(zero[start:end])]
    start, end = max(runs, key=lambda run: (run[1] - run[0], -run[0]), default=(8, 8))
    parts: list[CodePart] = []
    for place, group in enumerate(groups):
        if start <= place < end:
            if place == start:
                parts.append("::")
        else:
            parts += [":", group] if place and place != end else [group]
    return parts


class MacAddress(CodeType):
    """Locally administered addresses for one card, which no manufacturer uses."""

    name = "mac_address"
    label = "MAC Address"
    category = "internet"
    description = "A locally administered MAC address, which belongs to no manufacturer."
    aliases = ("mac", "ethernet address", "macaddr", "hardware address")
    example = "4e:9f:2c:71:b0:38"

    class Options(OptionsModel):
        separator: Literal[":", "-", "."] = Field(
            ":", description="Separator between pairs of digits; a dot separates groups of four."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        separator = options.separator
        # IEEE 802, section 8.4: the second lowest bit of the first byte means local, the lowest means group.
        parts: list[CodePart] = [Run(HEX), Run("26ae")]
        for pair in range(1, 6):
            if separator != "." or pair % 2 == 0:
                parts.append(separator)
            parts.append(Run(HEX, 2))
        self.use(compiler.vocabulary.cached(("mac", separator), lambda: Code(*parts)))

    @classmethod
    def capacity(cls) -> int:
        return 1 << 46


_PURPOSES = (
    "api", "app", "auth", "backup", "build", "cache", "cdn", "db", "dev", "dns", "edge", "files", "ftp", "git", "host",
    "lb", "log", "mail", "mon", "node", "proxy", "queue", "search", "smtp", "srv", "stage", "test", "vpn", "web",
    "worker",
)  # fmt: skip
_UNIX = (
    "/data", "/etc/app", "/home/ann/documents", "/home/ann/downloads", "/home/lee/projects", "/mnt/archive",
    "/mnt/backup/daily", "/mnt/share/finance", "/opt/app/data", "/opt/reports", "/srv/files", "/srv/ftp/incoming",
    "/srv/www/uploads", "/usr/local/share", "/usr/share/app", "/var/backups", "/var/data/exports", "/var/data/imports",
    "/var/lib/app", "/var/spool/jobs",
)  # fmt: skip
_WINDOWS = (
    r"C:\Data", r"C:\Exports", r"C:\Inetpub\uploads", r"C:\ProgramData\App", r"C:\Reports\Daily", r"C:\Temp",
    r"C:\Users\Ann\Desktop", r"C:\Users\Ann\Documents", r"C:\Users\Ann\Downloads", r"C:\Users\Lee\Documents",
    r"C:\Users\Lee\Pictures", r"C:\Users\Public\Documents", r"D:\Archive", r"D:\Backup\Weekly", r"D:\Projects\Shared",
    r"E:\Media", r"\\fileserver\finance", r"\\fileserver\public", r"\\fileserver\scans", r"\\nas\backup",
)  # fmt: skip


class Hostname(IndexedType):
    """The purpose of a machine, its number, and its site, in a domain that is reserved for examples or
    under ``domain``."""

    name = "hostname"
    label = "Hostname"
    category = "internet"
    description = "A host name, under a domain reserved for examples."
    aliases = (
        "host name",
        "host",
        "server name",
        "server",
        "fqdn",
        "machine name",
        "computer name",
        "node name",
    )
    example = "db-07.brightriver.example"
    dtype = pa.string()

    class Options(OptionsModel):
        domain: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="Domain of all hosts, such as internal. Default: varying domains.",
            examples=["corp.internal"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.domain is not None and not is_domain_suffix(options.domain):
            text = f'"{options.domain}" is not a valid domain of a host name.'
            compiler.fault(
                field, "options.domain", "wrong_format", text, "Use a value such as corp.internal."
            )
        vocabulary = compiler.vocabulary
        self._host_range = vocabulary.cached(
            "hosts",
            lambda: pa.array([f"{use}-{number:02d}." for number in range(1, 100) for use in _PURPOSES]),
        )
        if options.domain is None:
            self._sites, self._end_texts = vocabulary.words("site_name"), _reserved_domains()
        else:
            self._sites, self._end_texts = pa.array([options.domain.lower().strip(".")]), pa.array([""])
        self.size = len(self._host_range) * len(self._sites) * len(self._end_texts)
        self.max_length = sum(map(max_text_length, (self._host_range, self._sites, self._end_texts)))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*_combine_pools(index, self._host_range, self._sites, self._end_texts))


@cache
def _reserved_domains() -> pa.StringArray:
    return pa.array(RESERVED_ENDINGS)


def _combine_pools(index: np.ndarray, *pools: pa.StringArray) -> tuple[PoolPart, ...]:
    """Combination ``index`` of the pools, the first changing fastest."""
    parts = []
    for pool in pools[:-1]:
        rest = index // np.uint64(len(pool))
        parts.append((pool, index - rest * np.uint64(len(pool))))
        index = rest
    return (*parts, (pools[-1], index))


_PORTS = {"any": (1, 65_535), "system": (1, 1023), "user": (1024, 49_151), "dynamic": (49_152, 65_535)}
"""RFC 6335, section 6."""


class Port(IndexedType):
    """A port number of one of the ranges of RFC 6335."""

    name = "port"
    label = "Port"
    category = "internet"
    description = "A TCP or UDP port."
    aliases = ("port number", "tcp port", "udp port", "network port")
    example = 8443
    dtype = pa.int64()

    class Options(OptionsModel):
        range: Literal["any", "system", "user", "dynamic"] = Field(
            "any", description="system: 1 to 1023; user: 1024 to 49151; dynamic: 49152 to 65535."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._low, self._high = _PORTS[options.range]
        self.size = self._high - self._low + 1

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return pa.array(index.view(np.int64) + self._low)

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._low, self._high

    @classmethod
    def capacity(cls) -> int:
        return 65_535


class FilePath(FileName):
    """A folder and a file in it."""

    name = "file_path"
    label = "File path"
    description = "The path of a file on Unix or Windows."
    aliases = (
        "filepath",
        "path",
        "file location",
        "unix path",
        "windows path",
        "full path",
        "file system path",
    )
    example = "/var/data/exports/report-0417.pdf"

    class Options(FileName.Options):
        system: Literal["unix", "windows"] = Field("unix", description="Path style.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._folder_texts = _folder_texts(options.system)
        self._files = self.size
        self.size *= len(self._folder_texts)
        assert self.max_length is not None  # a file name's is known
        self.max_length += max_text_length(self._folder_texts)

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        folder = index // np.uint64(self._files)
        return join_parts((self._folder_texts, folder), *self.parts(index - folder * np.uint64(self._files)))


@cache
def _folder_texts(system: str) -> pa.StringArray:
    if system == "unix":
        return pa.array([f"{folder}/" for folder in _UNIX])
    return pa.array([f"{folder}\\" for folder in _WINDOWS])


class ImageUrl(IndexedType):
    """The address of a picture of the requested size, at a host that is reserved for examples."""

    name = "image_url"
    label = "Image URL"
    category = "internet"
    description = "The URL of an image, at a host reserved for examples."
    aliases = (
        "dummy image url",
        "image",
        "picture url",
        "image address",
        "thumbnail",
        "photo url",
        "img src",
    )
    example = "https://images.example/640x480/004821.jpg"
    dtype = pa.string()
    size = 10**6

    class Options(OptionsModel):
        width: int = Field(640, ge=1, le=limits.MAX_PIXELS, description="Width in pixels.")
        height: int = Field(480, ge=1, le=limits.MAX_PIXELS, description="Height in pixels.")
        format: Literal["jpg", "png", "gif", "webp", "svg"] = Field("jpg", description="Image format.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        start = f"https://images.example/{options.width}x{options.height}/"
        end = f".{options.format}"
        self._pools = digit_table(3, "", end), digit_table(3, start)
        self.max_length = len(start) + 6 + len(end)

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        low, high = _combine_pools(index, *self._pools)
        return join_parts(high, low)

    @classmethod
    def capacity(cls) -> int:
        return cls.size


_STAGES = ("", "-alpha.1", "-alpha.2", "-beta.1", "-beta.2", "-beta.3", "-rc.1", "-rc.2")


class Semver(IndexedType):
    """Major, minor and patch, and optionally a pre-release (Semantic Versioning 2.0.0)."""

    name = "semver"
    label = "Semantic version"
    category = "internet"
    description = "A semantic version, such as 3.14.2."
    aliases = (
        "version",
        "semantic version",
        "app version",
        "software version",
        "release version",
        "version number",
    )
    example = "3.14.2"
    dtype = pa.string()

    class Options(OptionsModel):
        max_major: int = Field(9, ge=0, le=99, description="Maximum major version.")
        prerelease: bool = Field(
            False, description="Includes pre-release versions such as -alpha.1, -beta.2 and -rc.1."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._stages = _STAGES if options.prerelease else _STAGES[:1]
        self._heads, self._minors = _major_texts(options.max_major), _number_texts(".")
        self._tails = _patch_texts(self._stages)
        self.size = len(self._heads) * len(self._minors) * len(self._tails)
        self.max_length = sum(map(max_text_length, (self._heads, self._minors, self._tails)))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*_combine_pools(index, self._heads, self._minors, self._tails))

    @classmethod
    def capacity(cls) -> int:
        return 100_000


@cache
def _major_texts(maximum: int) -> pa.StringArray:
    return pa.array([f"{number}." for number in range(maximum + 1)])


@cache
def _number_texts(after: str) -> pa.StringArray:
    return pa.array([f"{number}{after}" for number in range(100)])


@cache
def _patch_texts(stages: tuple[str, ...]) -> pa.StringArray:
    return pa.array([f"{number}{stage}" for stage in stages for number in range(100)])


class BundleId(IndexedType):
    """A site's name in reverse order and the kind of program: letters, digits, hyphens and full stops."""

    name = "bundle_id"
    label = "Bundle ID"
    category = "internet"
    description = "The bundle identifier of an app, such as com.brightriver.labs."
    aliases = ("app bundle id", "bundle identifier", "package name", "android package")
    example = "com.brightriver.labs"
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self._starts = vocabulary.cached("bundle starts", lambda: pa.array(["com.", "io.", "org.", "net."]))
        self._sites = vocabulary.words("site_name")
        self._end_texts = vocabulary.cached(
            "bundle ends",
            lambda: pa.array([f".{kind}" for kind in vocabulary.words("site_kind").to_pylist()]),
        )
        self.size = len(self._starts) * len(self._sites) * len(self._end_texts)
        self.max_length = sum(map(max_text_length, (self._starts, self._sites, self._end_texts)))

    def values_at(self, index: np.ndarray, context: ColumnContext) -> pa.Array:
        return join_parts(*_combine_pools(index, self._starts, self._sites, self._end_texts))
