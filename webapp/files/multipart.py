"""Uploads as they come in: multipart/form-data (RFC 7578) whose files pass through a nameless file on the disk.

Werkzeug's parser would keep files in the machine's temporary folder, which may be memory, and would take a body that
breaks off for an empty form. `Request` parses the upload of workspace files otherwise: into `spool` in the data
folder, no further than a file may reach, with an error for what is malformed. No file is ever whole in memory.
"""

from __future__ import annotations

import io
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

import flask
from flask import current_app
from werkzeug.datastructures import FileStorage, MultiDict
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.formparser import FormDataParser

from webapp import limits
from webapp.errors import ApiError, Fault, did_you_mean, validation_error
from webapp.extensions import db
from webapp.files import names, services
from webapp.web.inputs import FORM_ONLY

ENDPOINTS: Final = frozenset(
    {"workspace_files.upload", "imports.create", "imports.compare", "draft_sources.upload", "masked.look"}
)
MULTIPART: Final = "multipart/form-data"
KNOWN_PARTS: Final = ("name", "folder", "file", "shared")
_BOOLEANS: Final = {"true": True, "on": True, "false": False, "": False}  # a form's checkbox sends `on`
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["file"],
    "additionalProperties": False,
    "properties": {
        "name": {
            "type": "string",
            "maxLength": limits.MAX_FILE_NAME_CHARS,
            "description": (
                "The name with folders, such as `inputs/customers.csv`. Default: the file's own name."
            ),
        },
        "folder": {"type": "string", "description": "A folder, which is added before the name."},
        "shared": {
            "type": "string",
            "enum": ["true", "false"],
            "default": "false",
            "description": "`true`: the file belongs to the whole workspace, not to the project.",
        },
        "file": {"type": "string", "format": "binary", "description": "At most 50 MB."},
    },
}


class Spool:
    """One file of an upload, in an unnamed temporary file, which is deleted when it is closed or its process exits."""

    def __init__(self, folder: Path) -> None:
        with services.translated_errors():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._file: IO[bytes] = TemporaryFile(dir=folder)  # noqa: SIM115 - closed with the request
        self._size = 0

    def write(self, data: bytes) -> int:
        """Append data. Errors: payload_too_large as soon as it is too long, unavailable."""
        self._size += len(data)
        if self._size > limits.MAX_UPLOAD_BYTES:
            raise services.too_large_error()
        with services.translated_errors():
            return self._file.write(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        """Like `seek` of a file. Error: unavailable if the data does not fit on the disk."""
        with services.translated_errors():
            return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Like `read` of a file."""
        return self._file.read(size)

    def tell(self) -> int:
        """Like `tell` of a file."""
        return self._file.tell()

    def fileno(self) -> int:
        """Like `fileno` of a file."""
        return self._file.fileno()

    def flush(self) -> None:
        """Like `flush` of a file. Error: unavailable if the data does not fit on the disk."""
        with services.translated_errors():
            self._file.flush()

    def close(self) -> None:
        """Close and delete the file."""
        with suppress(OSError):  # closing flushes the buffer, which fails on a full disk
            self._file.close()


class _Parser(FormDataParser):
    """Werkzeug's parser with a limit for all kinds of forms. Its own limit applies only to multipart/form-data."""

    def parse(
        self, stream: IO[bytes], mimetype: str, content_length: int | None, *more: Any, **options: Any
    ) -> Any:
        """See `FormDataParser.parse`. Errors: invalid_request, payload_too_large."""
        if mimetype == "application/x-www-form-urlencoded":
            data = stream.read(limits.MAX_BODY_BYTES + 1)
            if len(data) > limits.MAX_BODY_BYTES:
                raise ApiError("payload_too_large", details={"max_bytes": limits.MAX_BODY_BYTES})
            if data.count(b"&") >= limits.MAX_FORM_PARTS:
                raise ApiError("invalid_request", f"The form has more than {limits.MAX_FORM_PARTS:,} values.")
            stream = io.BytesIO(data)
        return super().parse(stream, mimetype, content_length, *more, **options)


class Request(flask.Request):
    """A request that parses the form of an upload as described in this module, and any other form like Werkzeug."""

    form_data_parser_class = _Parser

    @property
    def _spools(self) -> list[Spool]:
        spools: list[Spool] = self.__dict__.setdefault("rowsmith_spools", [])
        return spools

    def _get_file_stream(
        self,
        total_content_length: int | None,
        content_type: str | None,
        filename: str | None = None,
        content_length: int | None = None,
    ) -> Any:
        if self.endpoint not in ENDPOINTS:
            return super()._get_file_stream(total_content_length, content_type, filename, content_length)
        if len(self._spools) >= limits.MAX_FILES_PER_FORM:
            raise ApiError("invalid_request", f"A form can send at most {limits.MAX_FILES_PER_FORM} files.")
        spool = Spool(Path(current_app.config["SETTINGS"].data_dir) / "spool")
        self._spools.append(spool)
        return spool

    def make_form_data_parser(self) -> FormDataParser:
        """Return the parser; for uploads one that reports errors."""
        parser = super().make_form_data_parser()
        parser.silent = self.endpoint not in ENDPOINTS
        return parser

    def _load_form_data(self) -> None:
        if self.endpoint not in ENDPOINTS or "form" in self.__dict__:
            return super()._load_form_data()
        db.session.rollback()  # authentication read the database; a slow sender must not keep a transaction open
        try:
            return super()._load_form_data()
        except BaseException as error:
            for spool in self._spools:
                spool.close()
            if isinstance(error, RequestEntityTooLarge):
                raise services.too_large_error() from None
            if isinstance(error, ValueError):
                text = "The body is not valid multipart/form-data."
                raise ApiError("invalid_request", text) from None
            raise


def read(request: flask.Request, *, many: bool) -> list[tuple[str, FileStorage]]:
    """Return the files of an upload with their names. `many`: a browser's form may send several files.

    Errors: unsupported_media_type, invalid_request, payload_too_large, unavailable; validation_error with all errors of
    the parts and the names.
    """
    if request.mimetype != MULTIPART:
        text = "Send the file as multipart/form-data, with the parts `name` and `file`."
        details = {"content_type": request.mimetype, "expected": [MULTIPART]}
        raise ApiError("unsupported_media_type", text, details)
    found = []
    for part in dict.fromkeys([*request.form, *request.files]):
        if part not in KNOWN_PARTS and part not in FORM_ONLY:
            text = f"Unknown part `{part[:100]}`."
            found.append(Fault(part[:100], "unknown_key", text, did_you_mean(part[:100], KNOWN_PARTS)))
    if request.form.get("shared", "false") not in _BOOLEANS:
        found.append(Fault("shared", "not_allowed", "`shared` must be `true` or `false`."))
    for part in ("name", "folder", "shared"):
        if len(request.form.getlist(part)) > 1:
            found.append(Fault(part, "duplicate", "Send this part only once."))
        if part in request.files:
            found.append(Fault(part, "wrong_type", "This part must be a text, not a file."))
    if "file" in request.form:
        text = "This part must be a file, but it has no filename."
        found.append(Fault("file", "wrong_type", text, "With curl: -F file=@customers.csv"))
    files = [file for file in request.files.getlist("file") if file.filename]
    if not files and "file" not in request.form:
        hint = "Choose a file, or drop it on the page." if many else "With curl: -F file=@customers.csv"
        found.append(Fault("file", "missing", "The form does not contain a file.", hint))
    if len(files) > 1 and (not many or request.form.get("name")):
        found.append(
            Fault("file", "duplicate", "Each request can store only one file.", "Send one request per file.")
        )
    folder = names.normalize(request.form.get("folder", "")).removesuffix("/")
    folder_faults = names.faults(f"{folder}/x", "folder") if folder else []
    found += folder_faults
    result = []
    for file in files:
        form_name = request.form.get("name", "")
        path = "name" if form_name else "file"
        # Without the folders of the client's machine.
        name = form_name or (file.filename or "").replace("\\", "/").rpartition("/")[2]
        full_name = f"{folder}/{name}" if folder else name
        problems = names.faults(full_name, path) if not folder_faults else []
        found += [fault for fault in problems if fault not in found]
        result.append((names.normalize(full_name), file))
    if found:
        raise validation_error(found)
    return result


def form_values(request: flask.Request) -> MultiDict[str, str]:
    """Return the texts of a form that was read. A body that could not be read is not read again, and has none."""
    return request.__dict__.get("form") or MultiDict()


def is_shared(request: flask.Request) -> bool:
    """Return whether the files are for the whole workspace. Call it after `read`."""
    return _BOOLEANS[request.form.get("shared", "false")]
