"""Sites, browsers, files and passwords."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from webapp import limits
from webapp.engine.fields.base import IndexedType, OptionsModel, PoolType, longest
from webapp.engine.fields.code_parts import DIGITS, LOWER, UPPER, Run
from webapp.engine.fields.codes import Code, CodeType, text_of
from webapp.engine.fields.company_group import Companies, locale_and_end, longest_site, site_tails
from webapp.engine.fields.joining import Part, digit_table, joined

if TYPE_CHECKING:
    from webapp.engine.block import Cells
    from webapp.engine.compiler import Compiler
    from webapp.engine.data.vocabulary import Vocabulary
    from webapp.engine.spec import FieldSpec

# RFC 2606, sections 2 and 3: a top-level domain and three domains that never belong to anybody.
RESERVED = (".example", ".example.com", ".example.net", ".example.org")
_TLD = re.compile(r"\.?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*)", re.I)

_SCHEME = "https://"

_SYMBOLS = "!#$%&*+-=?@^_"
_Class = Literal["lower", "upper", "digits", "symbols"]
_CLASSES: dict[_Class, str] = {"lower": LOWER, "upper": UPPER, "digits": DIGITS, "symbols": _SYMBOLS}
_END_SALT, _TURN_SALT = 59, 60


def is_domain(text: str) -> bool:
    """Whether a domain name may end in ``text``, with or without a full stop before it."""
    return _TLD.fullmatch(text) is not None


def _endings(tld: str | None) -> tuple[str, ...]:
    return RESERVED if tld is None else (f".{tld.lower().lstrip('.')}",)


class DomainName(IndexedType):
    """Two words, perhaps a third after a hyphen, under a domain that is reserved for examples or under ``tld``; in a
    group the name of the row's company."""

    name = "domain_name"
    label = "Domain Name"
    category = "internet"
    description = "The name of a site, under a domain that is reserved for examples."
    aliases: ClassVar[tuple[str, ...]] = ("domain", "website domain", "site", "safe domain name")
    example = "brightriver-labs.example"
    group_kind = "company"
    solitary = True
    joins = True
    dtype = pa.string()

    class Options(OptionsModel):
        tld: str | None = Field(
            None,
            max_length=limits.MAX_NAME_CHARS,
            description="What names end in, such as com; reserved endings if not given, so that no real site is hit.",
            examples=["com"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        if options.tld is not None and not is_domain(options.tld):
            text = f'"{options.tld}" cannot be the end of a domain name.'
            compiler.fault(field, "options.tld", "wrong_format", text, "Write it as com or co.uk.")
        vocabulary, endings = compiler.vocabulary, _endings(options.tld)
        self._names = vocabulary.words("site_name")
        self._ends = vocabulary.shared(("site ends", endings), lambda: _site_ends(vocabulary, endings))
        self._plain = len(endings)
        self.max_length = vocabulary.shared("longest site", lambda: longest(self._names))
        self.max_length += vocabulary.shared(("longest end", endings), lambda: longest(self._ends))
        self.size = len(self._names) * len(self._ends)
        self._sites = None
        if field.group:
            locale, end = locale_and_end(compiler.group_of(field), compiler)
            self._sites = site_tails(vocabulary, locale, end)
            self.max_length = longest_site(vocabulary, locale, end)

    def fill(self, cells: Cells) -> pa.Array:
        return super().fill(cells) if self._sites is None else joined(*self.of_company(cells))

    def of_company(self, cells: Cells) -> tuple[Part, ...]:
        """The site of the row's company."""
        company: Companies = cells.group()
        return (company.words.site_heads, company.head), (self._sites, company.tail)

    def space(self) -> int | None:
        return super().space() if self._sites is None else None

    def unique_hint(self) -> str:
        return (
            "It must agree with the company, whose site two companies may share; give it a group of its own."
        )

    def draw(self, cells: Cells) -> np.ndarray:
        # Half of the names go without a third word.
        end = cells.below(2 * len(self._ends), _END_SALT)
        end = np.where(end < np.uint64(len(self._ends)), end, end % np.uint64(self._plain))
        return end * np.uint64(len(self._names)) + cells.below(len(self._names))

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*self.parts(index))

    def parts(self, index: np.ndarray) -> tuple[Part, Part]:
        """Name and ending of the sites number ``index``."""
        names = np.uint64(len(self._names))
        end = index // names
        return (self._names, index - end * names), (self._ends, end)


def _site_ends(vocabulary: Vocabulary, endings: tuple[str, ...]) -> pa.Array:
    kinds = ["", *(f"-{kind}" for kind in vocabulary.words("site_kind").to_pylist())]
    return pa.array([kind + ending for kind in kinds for ending in endings])


class Url(DomainName):
    """A page of a site as `DomainName` makes them; unique by its site."""

    name = "url"
    label = "URL"
    description = "The address of a web page, under a domain that is reserved for examples."
    aliases = ("uri", "web address", "website", "link", "web page")
    example = "https://brightriver-labs.example/articles/17"

    def __init__(self, field: FieldSpec, options: DomainName.Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary = compiler.vocabulary
        self._pages = vocabulary.shared("pages", lambda: _pages(vocabulary))
        self._names = vocabulary.shared("secure sites", lambda: _secure(vocabulary))
        assert self.max_length is not None  # a domain name's is known
        self.max_length += len(_SCHEME) + vocabulary.shared("longest page", lambda: longest(self._pages))

    def of_company(self, cells: Cells) -> tuple[Part, ...]:
        company: Companies = cells.group()
        page = self._pages, cells.below(len(self._pages), 1)
        return (company.words.secure_heads, company.head), (self._sites, company.tail), page

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*self.parts(index), (self._pages, cells.below(len(self._pages), 1)))


def _secure(vocabulary: Vocabulary) -> pa.Array:
    return pc.binary_join_element_wise(_SCHEME, vocabulary.words("site_name"), "")


def _pages(vocabulary: Vocabulary) -> pa.Array:
    pages = vocabulary.words("site_page").to_pylist()
    return pa.array(
        ["/", *(f"/{page}" for page in pages), *(f"/{page}/{i}" for i in range(1, 100) for page in pages)]
    )


class Password(CodeType):
    """Characters of the classes, at least one of each. Where the required ones stand changes from row to row."""

    name = "password"
    label = "Password"
    category = "internet"
    description = "A password with at least one character of each class."
    aliases = ("secret", "pwd", "passphrase")
    example = "wR7#kfT2_mQz9b+A"

    class Options(OptionsModel):
        length: int = Field(16, ge=1, le=limits.MAX_CODE_CHARS, description="How many characters.")
        classes: tuple[_Class, ...] = Field(
            tuple(_CLASSES), min_length=1, description="Which kinds of characters."
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        classes = tuple(name for name in _CLASSES if name in options.classes)
        if len(classes) > options.length:
            text = f"{options.length} characters cannot hold one of each of {len(classes)} classes."
            compiler.fault(
                field, "options.length", "too_short", text, "Ask for more characters or fewer classes."
            )
            return
        key = ("password", options.length, classes)
        self.use(compiler.vocabulary.shared(key, lambda: _password(options.length, classes)))

    def fill(self, cells: Cells) -> pa.Array:
        matrix = self.code.bytes(self.code.draw(cells))
        width = self.code.width
        places = _turns(width).take(cells.below(width, _TURN_SALT).view(np.int64), axis=0)
        places += np.arange(0, matrix.size, width)[:, None]
        return text_of(matrix.ravel().take(places))

    def fill_unique(self, cells: Cells) -> pa.Array:
        # Turned texts could meet; in their fixed order every one differs.
        return self.code.text(self.code.draw_unique(cells))


@lru_cache(maxsize=64)
def _turns(width: int) -> np.ndarray:
    """``int64[width, width]``: places of a text's characters after each turn."""
    return (np.arange(width) + np.arange(width)[:, None]) % width


def _password(length: int, classes: tuple[_Class, ...]) -> Code:
    any_of = "".join(_CLASSES[name] for name in classes)
    every = length // len(classes)
    parts: list[Run] = []
    for name in classes:
        parts.append(Run(_CLASSES[name]))
        if every > 1:
            parts.append(Run(any_of, every - 1))
    rest = length - every * len(classes)
    return Code(*parts, *([Run(any_of, rest)] if rest else []))


class UserAgent(PoolType):
    """What browsers of recent years send as User-Agent."""

    name = "user_agent"
    label = "User Agent"
    category = "internet"
    description = "What a browser calls itself in a request."
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
        self.use(compiler.vocabulary.words("user_agent"))


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
        self.use(_methods())


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
        self.use(_statuses())


@cache
def _statuses() -> pa.Array:
    success, moved = [200, 201, 202, 204, 206], [301, 302, 303, 304, 307, 308]
    refused = [400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 422, 429]
    return pa.array([*success, *moved, *refused, 500, 501, 502, 503, 504], pa.int64())


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
        self.use(
            vocabulary.shared(
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
            description="One extension for all; common ones if not given.",
            examples=["pdf"],
        )

    options: Options

    def __init__(self, field: FieldSpec, options: Options, compiler: Compiler) -> None:
        super().__init__(field, options, compiler)
        vocabulary, extension = compiler.vocabulary, options.extension
        self._stems = vocabulary.words("file_stem")
        self._ends = vocabulary.shared(("file ends", extension), lambda: _file_ends(vocabulary, extension))
        self._numbers = digit_table(4, "-")
        self._inner = len(self._stems) * len(self._numbers)
        self.size = self._inner * len(self._ends)
        self.max_length = longest(self._stems) + longest(self._numbers) + longest(self._ends)

    def at(self, index: np.ndarray, cells: Cells) -> pa.Array:
        return joined(*self.parts(index))

    def parts(self, index: np.ndarray) -> tuple[Part, ...]:
        """Word, number and extension of the files number ``index``."""
        end = index // np.uint64(self._inner)
        rest = index - end * np.uint64(self._inner)
        stem = rest // np.uint64(len(self._numbers))
        number = rest - stem * np.uint64(len(self._numbers))
        return (self._stems, stem), (self._numbers, number), (self._ends, end)


def _file_ends(vocabulary: Vocabulary, extension: str | None) -> pa.Array:
    known = (
        vocabulary.table("file_kind")["extension"].to_pylist()
        if extension is None
        else [extension.lstrip(".")]
    )
    return pa.array([f".{name}" for name in known])
