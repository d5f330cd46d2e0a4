"""Receive and answer the kernel's notifications about system calls (seccomp_unotify(2))."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import socket
import struct
from dataclasses import dataclass
from typing import Any, Final

# _IOWR('!', 0, struct seccomp_notif), _IOWR('!', 1, seccomp_notif_resp), _IOW('!', 2, __u64), _IOW('!', 3, _addfd)
_RECEIVE, _RESPOND, _VALID, _INJECT = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
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
class Notification:
    """A system call that waits for a response. `thread`: the caller's id in our namespace."""

    id: int
    thread: int
    number: int
    arguments: tuple[int, ...]

    @property
    def descriptor(self) -> int:
        """The call's first argument, a descriptor in all calls that we are notified about."""
        return ctypes.c_int32(self.arguments[0] & 0xFFFFFFFF).value


def receive(listener: int) -> Notification | None:
    """Receive the next notification; None if the caller has ended."""
    buffer = bytearray(_NOTIFICATION.size)
    try:
        fcntl.ioctl(listener, _RECEIVE, buffer, True)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.EINTR, errno.EAGAIN):
            return None
        raise
    made, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(made, thread, number, tuple(arguments))


def respond(listener: int, notification: Notification, error: int = 0, *, allow: bool = False) -> None:
    """Make the call return 0, fail with an error number, or (`allow`) continue in the kernel."""
    reply = _RESPONSE.pack(notification.id, 0, -error, _CONTINUE if allow else 0)
    try:
        fcntl.ioctl(listener, _RESPOND, bytearray(reply), True)
    except OSError as fault:
        if fault.errno not in (errno.ENOENT, errno.EINPROGRESS):
            raise


def is_pending(listener: int, notification: Notification) -> bool:
    """Whether the call still waits, so that what was read belongs to the caller's process."""
    try:
        fcntl.ioctl(listener, _VALID, bytearray(struct.pack("=Q", notification.id)), True)
    except OSError:
        return False
    return True


def inject_descriptor(listener: int, notification: Notification, made: int, *, close_on_exec: bool) -> bool:
    """Replace the call's descriptor with one of ours. Return False if the caller has ended."""
    flags = os.O_CLOEXEC if close_on_exec else 0
    order = _ADD.pack(notification.id, _REPLACE, made, notification.descriptor, flags)
    try:
        fcntl.ioctl(listener, _INJECT, bytearray(order), True)
    except OSError:
        return False
    return True


def sockaddr(notification: Notification) -> bytes:
    """Return a copy of the address in the call's second and third arguments. Raises OSError if it is invalid."""
    length = notification.arguments[2] & 0xFFFFFFFF
    if length > _LONGEST:
        raise OSError(errno.EINVAL, "sockaddr")
    memory = os.open(f"/proc/{notification.thread}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        got = os.pread(memory, length, notification.arguments[1])
    except (OSError, OverflowError):
        raise OSError(errno.EFAULT, "sockaddr") from None
    finally:
        os.close(memory)
    if len(got) != length:
        raise OSError(errno.EFAULT, "sockaddr")
    return got


def duplicate(notification: Notification) -> socket.socket:
    """Return a duplicate of the caller's socket. It stays the same if the caller replaces its descriptor.
    Raises OSError if it is not a socket."""
    process = os.pidfd_open(_process(notification.thread))
    try:
        found = libc.syscall(_PIDFD_GETFD, process, notification.descriptor, 0)
        if found < 0:
            raise OSError(ctypes.get_errno(), "pidfd_getfd")
    finally:
        os.close(process)
    try:
        return socket.socket(fileno=found)
    except OSError:
        os.close(found)
        raise


def closes_on_exec(notification: Notification) -> bool:
    """Whether the caller's descriptor is closed by execve."""
    with open(f"/proc/{notification.thread}/fdinfo/{notification.descriptor}") as file:
        flags = next(line for line in file if line.startswith("flags:"))
    return bool(int(flags.split()[1], 8) & os.O_CLOEXEC)


def open_inside(notification: Notification, path: bytes) -> int:
    """Open a path as the caller would (O_PATH). Links cannot leave the caller's file system."""
    root = os.open(f"/proc/{notification.thread}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not path.startswith(b"/"):
            path = os.readlink(f"/proc/{notification.thread}/cwd").encode() + b"/" + path
        how = struct.pack("=QQQ", os.O_PATH | os.O_CLOEXEC, 0, _IN_ROOT)
        found: int = libc.syscall(_OPENAT2, root, ctypes.c_char_p(path), how, len(how))
        if found < 0:
            raise OSError(ctypes.get_errno(), "openat2")
        return found
    finally:
        os.close(root)


def call(name: str, one: socket.socket, *arguments: bytes | int) -> int:
    """Call a function of the C library on a socket. Return 0 or the error number. Python's functions would
    block."""
    given: list[Any] = [
        ctypes.c_char_p(argument) if isinstance(argument, bytes) else ctypes.c_int(argument)
        for argument in arguments
    ]
    if isinstance(arguments[0], bytes):  # an address, whose length follows
        given.append(ctypes.c_uint32(len(arguments[0])))
    return 0 if getattr(libc, name)(one.fileno(), *given) == 0 else ctypes.get_errno()


def _process(thread: int) -> int:
    with open(f"/proc/{thread}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
