"""Machines and programs: host names and ports, paths and pictures, versions and names of bundles."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa
from pydantic import Field

from webapp import limits
from webapp.engine.fields import internet
from webapp.engine.fields.base import IndexedType, OptionsModel, longest
from webapp.engine.fields.joining import Part, digit_table, joined

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

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
    """What a machine is for, its number, and the site it belongs to, under a domain that is reserved for examples or
    under ``domain``."""

    name = "hostname"
    label = "Hostname"
    category = "internet"
    description = "The name of a machine, under a domain that is reserved for examples."
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
            description="The domain of all machines, such as internal; sites of many names if not given.",
            examples=["corp.internal"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.domain is not None and not internet.is_domain(options.domain):
            text = f'"{options.domain}" cannot be the end of a host name.'
            compiler.fault(field, "options.domain", "wrong_format", text, "Write it as corp.internal.")
        vocabulary = compiler.vocabulary
        self._hosts = vocabulary.shared("hosts", _hosts)
        if options.domain is None:
            self._sites, self._ends = vocabulary.words("site_name"), _reserved()
        else:
            self._sites, self._ends = pa.array([options.domain.lower().strip(".")]), pa.array([""])
        self.size = len(self._hosts) * len(self._sites) * len(self._ends)
        self.max_length = sum(map(longest, (self._hosts, self._sites, self._ends)))

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*_parts(index, self._hosts, self._sites, self._ends))


def _hosts() -> pa.StringArray:
    return pa.array([f"{purpose}-{number:02d}." for number in range(1, 100) for purpose in _PURPOSES])


@cache
def _reserved() -> pa.StringArray:
    return pa.array(internet.RESERVED)


def _parts(index: np.ndarray, *pools: pa.StringArray) -> tuple[Part, ...]:
    """Combination ``index`` of the pools, the first changing fastest."""
    parts = []
    for pool in pools[:-1]:
        further = index // np.uint64(len(pool))
        parts.append((pool, index - further * np.uint64(len(pool))))
        index = further
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

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return pa.array(index.view(np.int64) + self._low)

    def bounds(self, rows: int) -> tuple[int, int]:
        return self._low, self._high

    @classmethod
    def capacity(cls) -> int:
        return 65_535


class FilePath(internet.FileName):
    """A folder and a file in it."""

    name = "file_path"
    label = "File path"
    description = "The path of a file, as Unix or Windows writes it."
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

    class Options(internet.FileName.Options):
        system: Literal["unix", "windows"] = Field("unix", description="How paths are written.")

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._folders = _folders(options.system)
        self._files = self.size
        self.size *= len(self._folders)
        assert self.max_length is not None  # a file name's is known
        self.max_length += longest(self._folders)

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        folder = index // np.uint64(self._files)
        return joined((self._folders, folder), *self.parts(index - folder * np.uint64(self._files)))


@cache
def _folders(system: str) -> pa.StringArray:
    if system == "unix":
        return pa.array([f"{folder}/" for folder in _UNIX])
    return pa.array([f"{folder}\\" for folder in _WINDOWS])


class ImageUrl(IndexedType):
    """The address of a picture of a stated size, at a host that is reserved for examples: nothing is there."""

    name = "image_url"
    label = "Image URL"
    category = "internet"
    description = "The web address of a picture, at a host that is reserved for examples."
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
        format: Literal["jpg", "png", "gif", "webp", "svg"] = Field(
            "jpg", description="Format of the picture."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        start = f"https://images.example/{options.width}x{options.height}/"
        end = f".{options.format}"
        self._pools = digit_table(3, "", end), digit_table(3, start)
        self.max_length = len(start) + 6 + len(end)

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        low, high = _parts(index, *self._pools)
        return joined(high, low)

    @classmethod
    def capacity(cls) -> int:
        return cls.size


_STAGES = ("", "-alpha.1", "-alpha.2", "-beta.1", "-beta.2", "-beta.3", "-rc.1", "-rc.2")


class Semver(IndexedType):
    """Major, minor and patch, and if asked for a pre-release (Semantic Versioning 2.0.0)."""

    name = "semver"
    label = "Semantic version"
    category = "internet"
    description = "A version such as 3.14.2."
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
        max_major: int = Field(9, ge=0, le=99, description="The largest major version.")
        prerelease: bool = Field(
            False, description="Lets versions end in -alpha.1, -beta.2, -rc.1 and so on too."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        self._stages = _STAGES if options.prerelease else _STAGES[:1]
        self._heads, self._minors = _majors(options.max_major), _hundred(".")
        self._tails = _patches(self._stages)
        self.size = len(self._heads) * len(self._minors) * len(self._tails)
        self.max_length = sum(map(longest, (self._heads, self._minors, self._tails)))

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*_parts(index, self._heads, self._minors, self._tails))

    @classmethod
    def capacity(cls) -> int:
        return 100_000


@cache
def _majors(most: int) -> pa.StringArray:
    return pa.array([f"{number}." for number in range(most + 1)])


@cache
def _hundred(after: str) -> pa.StringArray:
    return pa.array([f"{number}{after}" for number in range(100)])


@cache
def _patches(stages: tuple[str, ...]) -> pa.StringArray:
    return pa.array([f"{number}{stage}" for stage in stages for number in range(100)])


class BundleId(IndexedType):
    """A site's name backwards and what the program is: letters, digits, hyphens and full stops."""

    name = "bundle_id"
    label = "Bundle ID"
    category = "internet"
    description = "The identifier of an app's package, such as com.brightriver.labs."
    aliases = ("app bundle id", "bundle identifier", "package name", "android package")
    example = "com.brightriver.labs"
    dtype = pa.string()

    def __init__(self, field: FieldSpec, options: OptionsModel, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self._starts = vocabulary.shared("bundle starts", lambda: pa.array(["com.", "io.", "org.", "net."]))
        self._sites = vocabulary.words("site_name")
        self._ends = vocabulary.shared("bundle ends", lambda: _programs(vocabulary))
        self.size = len(self._starts) * len(self._sites) * len(self._ends)
        self.max_length = sum(map(longest, (self._starts, self._sites, self._ends)))

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*_parts(index, self._starts, self._sites, self._ends))


def _programs(vocabulary: Vocabulary) -> pa.StringArray:
    return pa.array([f".{kind}" for kind in vocabulary.words("site_kind").to_pylist()])
