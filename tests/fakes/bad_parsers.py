"""Functions that a document process calls, each of which ends badly in its own way."""

from __future__ import annotations

import ctypes


def size(file):
    return len(file.read())


def crash(file):
    ctypes.string_at(0)


def fill(file):
    return len(bytearray(2 * 1024**3))


def recurse(file):
    return recurse(file)


def fail(file):
    raise KeyError("x")


def spin(file):
    while True:
        pass
