"""The kernel's questions before a program's calls (seccomp_unotify(2)), and what is looked up to answer them."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from typing import Final

# _IOWR('!', 0, struct seccomp_notif), _IOWR('!', 1, seccomp_notif_resp), _IOW('!', 2, __u64), _IOW('!', 3, _addfd)
_RECEIVE, _ANSWER, _VALID, _INJECT = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_QUESTION: Final = struct.Struct("=QIIiIQ6Q")
_REPLY: Final = struct.Struct("=QqiI")
_ADD: Final = struct.Struct("=QIIII")
_CONTINUE: Final = 1
_REPLACE: Final = 1  # SECCOMP_ADDFD_FLAG_SETFD
_PIDFD_GETFD: Final = 438
_OPENAT2: Final = 437
_IN_ROOT: Final = 0x10 | 0x02  # RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS
_LONGEST: Final = 128  # struct sockaddr_storage

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long


@dataclass(frozen=True)
class Question:
    """One call that waits. `thread`: who makes it, as we number it."""

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]

    @property
    def descriptor(self) -> int:
        """The first argument of all calls that are asked about."""
        return ctypes.c_int32(self.arguments[0] & 0xFFFFFFFF).value


def receive(listener: int) -> Question | None:
    """The next question; None where who asked is gone."""
    buffer = bytearray(_QUESTION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer, True)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
            return None
        raise
    made, thread, _, number, _, _, *arguments = _QUESTION.unpack(buffer)
    return Question(made, thread, number, tuple(arguments))


def answer(listener: int, question: Question, error: int = 0, *, carry_on: bool = False) -> None:
    """The call returns 0, or fails with an error number, or (`carry_on`) is carried out by the kernel."""
    reply = _REPLY.pack(question.id, 0, -error, _CONTINUE if carry_on else 0)
    try:
        fcntl.ioctl(listener, _ANSWER, bytearray(reply), True)
    except OSError as fault:
        if fault.errno not in (errno.ENOENT, errno.EINPROGRESS):
            raise


def waits(listener: int, question: Question) -> bool:
    """Whether the call still waits, so that what was read of its process was of that process."""
    try:
        fcntl.ioctl(listener, _VALID, bytearray(struct.pack("=Q", question.id)), True)
    except OSError:
        return False
    return True


def inject(listener: int, question: Question, made: int, *, close_on_exec: bool) -> bool:
    """Put a descriptor of ours in the place of the one the call is about. False if the call is gone."""
    flags = os.O_CLOEXEC if close_on_exec else 0
    order = _ADD.pack(question.id, _REPLACE, made, question.descriptor, flags)
    try:
        fcntl.ioctl(listener, _INJECT, bytearray(order), True)
    except OSError:
        return False
    return True


def sockaddr(question: Question) -> bytes:
    """Our copy of the address that the call's second and third argument tell. OSError for a bad one."""
    length = question.arguments[2] & 0xFFFFFFFF
    if length > _LONGEST:
        raise OSError(errno.EINVAL, "sockaddr")
    memory = os.open(f"/proc/{question.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        got = os.pread(memory, length, question.arguments[1])
    except (OSError, OverflowError):
        raise OSError(errno.EFAULT, "sockaddr") from None
    finally:
        os.close(memory)
    if len(got) != length:
        raise OSError(errno.EFAULT, "sockaddr")
    return got


def duplicate(question: Question) -> socket.socket:
    """The caller's socket, as one of ours: the same file, whatever the caller puts in its place meanwhile. OSError if
    it is none."""
    process = os.pidfd_open(_process(question.thread))
    try:
        found = libc.syscall(_PIDFD_GETFD, process, question.descriptor, 0)
        if found < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
    finally:
        os.close(process)
    try:
        return socket.socket(fileno=found)
    except OSError:
        os.close(found)
        raise


def closes_on_exec(question: Question) -> bool:
    """Whether the caller's descriptor is closed where it becomes another program."""
    with open(f"/proc/{question.thread}/fdinfo/{question.descriptor}") as file:
        flags = next(line for line in file if line.startswith("flags:"))
    return bool(int(flags.split()[1], 8) & os.O_CLOEXEC)


def open_inside(question: Question, path: bytes) -> int:
    """A descriptor (O_PATH) of what the caller means by a path. No link leads out of the caller's file system."""
    root = os.open(f"/proc/{question.thread}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not path.startswith(b"/"):
            path = os.readlink(f"/proc/{question.thread}/cwd").encode() + b"/" + path
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
        found = libc.syscall(_OPENAT2, root, ctypes.c_char_p(path), how, len(how))
        if found < 0:
            raise OSError(ctypes.get_errno(), "openat2")
        return found
    finally:
        os.close(root)


def call(name: str, one: socket.socket, *arguments: bytes | int) -> int:
    """A call of the C library on a socket: 0 or the error number. Python's own would wait."""
    given = [ctypes.c_char_p(each) if isinstance(each, bytes) else ctypes.c_int(each) for each in arguments]
    if name != "listen":
        given.append(ctypes.c_uint32(len(arguments[0])))  # type: ignore[arg-type]
    return 0 if getattr(libc, name)(one.fileno(), *given) == 0 else ctypes.get_errno()


def _process(thread: int) -> int:
    with open(f"/proc/{thread}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
