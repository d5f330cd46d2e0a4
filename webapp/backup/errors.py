"""Errors of backup, restore and upgrade."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from obstore.exceptions import BaseError
from sqlalchemy.exc import DatabaseError


class UpkeepError(Exception):
    """The command cannot continue. The message is for users: one or two sentences about the cause and the remedy."""


@contextmanager
def told(doing: str, folder: Path) -> Iterator[None]:
    """Convert exceptions of disks, storages and databases to `UpkeepError`. `doing`: "The backup was not created";
    `folder`: where it writes."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise UpkeepError(
                f"{doing}: the disk of {folder} is full. Free some space, then try again."
            ) from error
        raise UpkeepError(f"{doing}: {error.strerror or error} ({error.filename or folder}).") from error
    except BaseError as error:
        raise UpkeepError(
            f"{doing}: the storage does not answer: {str(error).partition(chr(10))[0]}."
        ) from error
    except DatabaseError as error:
        said = str(error.orig).partition("\n")[0]
        if "is full" in said:
            said = f"the disk of {folder} is full"
        raise UpkeepError(f"{doing}: the database says: {said}.") from error
