"""The seccomp filter: which system calls a program may make, an assembler for it (classic BPF, seccomp(2)), and the
kernel's notifications about system calls (seccomp_unotify(2)), which are received and answered here.

The rules block calls that configure the machine or affect other processes, network access that cannot be checked, and
memory that no limit covers. Calls that are newer than this list do not exist for the program (ENOSYS).
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

# Instructions (linux/bpf_common.h).
LOAD: Final = 0x20  # LD | W | ABS
AND: Final = 0x54  # ALU | AND | K
EQUAL: Final = 0x15  # JMP | JEQ | K
GREATER: Final = 0x25  # JMP | JGT | K
RETURN: Final = 0x06  # RET | K

# struct seccomp_data: nr, arch, instruction_pointer, args[6].
NUMBER: Final = 0
ARCHITECTURE: Final = 4
ARGUMENTS: Final = 16

_X32: Final = 0x40000000

# Actions of a filter (linux/seccomp.h).
ALLOW: Final = 0x7FFF0000
NOTIFY: Final = 0x7FC00000
KILL: Final = 0x80000000
_FAIL: Final = 0x00050000


def errno_action(errno: int) -> int:
    """Return the action that fails a call with an error number."""
    return _FAIL | errno


@dataclass(frozen=True)
class Condition:
    """A condition on one argument (from 0): its lower half, masked with `mask`, is (`is_negated`: is not) one of
    `values`."""

    argument: int
    values: tuple[int, ...]
    mask: int = 0xFFFFFFFF
    is_negated: bool = False
    upper: bool = False
    """Use the upper half instead."""


@dataclass(frozen=True)
class Rule:
    """The action for a system call if all conditions hold."""

    number: int
    action: int
    conditions: tuple[Condition, ...] = ()


Jump = int | None
"""The number of instructions to skip; None: the rest of the rule."""
Instruction = tuple[int, Jump, Jump, int]
"""Code, jump if true, jump if false, operand."""


def assemble(architecture: int, highest: int, rules: Sequence[Rule], otherwise: int) -> bytes:
    """Return the filter: `struct sock_filter`s in native byte order.

    Each rule is encoded separately and jumps only within itself, so that no jump exceeds 8 bits. The first
    matching rule decides. A call of a foreign architecture kills the process, because its numbers differ; so
    do calls of x32, which x86 marks with bit 30. A call above `highest` did not exist when this was written
    and fails with ENOSYS.
    """
    code: list[Instruction] = [
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (RETURN, 0, 0, KILL),
        (LOAD, 0, 0, NUMBER),
        (GREATER, 0, 1, _X32 - 1),
        (RETURN, 0, 0, KILL),
        (GREATER, 0, 1, highest),
        (RETURN, 0, 0, errno_action(errno.ENOSYS)),
    ]
    for rule in rules:
        code += _encode_rule(rule)
    code.append((RETURN, 0, 0, otherwise))
    return b"".join(struct.pack("=HBBI", *item) for item in code)


def _encode_rule(rule: Rule) -> list[Instruction]:
    """Encode one rule. The accumulator holds the call's number before and after it."""
    code: list[Instruction] = [(EQUAL, 0, None, rule.number)]
    for condition in rule.conditions:
        code += [
            (LOAD, 0, 0, ARGUMENTS + 8 * condition.argument + 4 * condition.upper),
            (AND, 0, 0, condition.mask),
        ]
        if condition.is_negated:
            code += [(EQUAL, None, 0, value) for value in condition.values]
        else:
            after = len(condition.values) - 1
            code += [(EQUAL, after - i, 0 if i < after else None, v) for i, v in enumerate(condition.values)]
    code.append((RETURN, 0, 0, rule.action))
    if rule.conditions:
        code.append((LOAD, 0, 0, NUMBER))
    end = len(code) - bool(rule.conditions)
    return [(c, _jump_target(end, i, t), _jump_target(end, i, f), k) for i, (c, t, f, k) in enumerate(code)]


def _jump_target(end: int, position: int, jump: Jump) -> int:
    """Return the jump, or the jump to the end of the rule."""
    return end - position - 1 if jump is None else jump


# AUDIT_ARCH_* (linux/audit.h), and the column of _NUMBERS.
ARCHITECTURES: Final = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
HIGHEST: Final = 462  # mseal, of Linux 6.10
_ABSENT: Final = -1

# Numbers on x86_64 and aarch64 (asm/unistd_64.h, asm-generic/unistd.h). From 424 on they are the same.
_NUMBERS: Final = {
    "socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201), "socketpair": (53, 199),
    "sendto": (44, 206), "sendmsg": (46, 211), "sendmmsg": (307, 269),
    "ioctl": (16, 29), "clone": (56, 220), "unshare": (272, 97), "setns": (308, 268), "kill": (62, 129),
    "tkill": (200, 130), "tgkill": (234, 131), "setsid": (112, 157), "setpgid": (109, 154),
    "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240), "setpriority": (141, 140),
    "prlimit64": (302, 261), "sched_setscheduler": (144, 119), "sched_setparam": (142, 118),
    "sched_setattr": (314, 274), "sched_setaffinity": (203, 122), "ioprio_set": (251, 30),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "seccomp": (317, 277),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "kexec_load": (246, 104),
    "kexec_file_load": (320, 294), "reboot": (169, 142), "swapon": (167, 224), "swapoff": (168, 225),
    "acct": (163, 89), "quotactl": (179, 60), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "adjtimex": (159, 171), "clock_adjtime": (305, 266), "sethostname": (170, 161), "setdomainname": (171, 162),
    "syslog": (103, 116), "vhangup": (153, 58), "personality": (135, 92), "lookup_dcookie": (212, 18),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fanotify_init": (300, 262),
    "nfsservctl": (180, 42), "migrate_pages": (256, 238), "move_pages": (279, 239), "mbind": (237, 235),
    "set_mempolicy": (238, 237), "shmget": (29, 194), "shmat": (30, 196), "msgget": (68, 186),
    "mq_open": (240, 180), "memfd_create": (319, 279), "io_setup": (206, 0), "io_submit": (209, 2),
    "mknod": (133, _ABSENT), "mknodat": (259, 33), "vmsplice": (278, 75),
    "ioperm": (173, _ABSENT), "iopl": (172, _ABSENT), "modify_ldt": (154, _ABSENT), "uselib": (134, _ABSENT),
    "ustat": (136, _ABSENT), "sysfs": (139, _ABSENT), "_sysctl": (156, _ABSENT),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "pidfd_open": (434, 434), "clone3": (435, 435),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443), "memfd_secret": (447, 447), "process_mrelease": (448, 448),
    "statmount": (457, 457), "listmount": (458, 458), "lsm_get_self_attr": (459, 459),
    "lsm_set_self_attr": (460, 460), "lsm_list_modules": (461, 461), "pidfd_send_signal": (424, 424),
    "chmod": (90, _ABSENT), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _ABSENT), "lchown": (94, _ABSENT), "fchown": (93, 55), "fchownat": (260, 54),
    "utime": (132, _ABSENT), "utimes": (235, _ABSENT), "futimesat": (261, _ABSENT), "utimensat": (280, 88),
    "open": (2, _ABSENT), "openat": (257, 56), "creat": (85, _ABSENT), "openat2": (437, 437),
    "truncate": (76, 45), "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "mmap": (9, 222), "fcntl": (72, 25), "setsockopt": (54, 208),
    "sendfile": (40, 71), "splice": (275, 76), "tee": (276, 77),
    "inotify_init": (253, _ABSENT), "inotify_init1": (294, 26),
    "semget": (64, 190), "semctl": (66, 191), "semtimedop": (220, 192), "semop": (65, 193),
    "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187), "shmctl": (31, 195), "shmdt": (67, 197),
    "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445), "landlock_restrict_self": (446, 446),
}  # fmt: skip

# Calls that fail with EPERM.
_DENIED: Final = """
    unshare setns mount umount2 pivot_root chroot ptrace process_vm_readv process_vm_writev kcmp add_key request_key
    keyctl bpf perf_event_open userfaultfd init_module finit_module delete_module kexec_load kexec_file_load reboot
    swapon swapoff acct quotactl settimeofday clock_settime adjtimex clock_adjtime sethostname setdomainname syslog
    vhangup lookup_dcookie open_by_handle_at name_to_handle_at fanotify_init nfsservctl migrate_pages move_pages mbind
    set_mempolicy ioperm iopl modify_ldt uselib ustat sysfs _sysctl open_tree move_mount fsopen fsconfig fsmount fspick
    pidfd_getfd process_madvise mount_setattr quotactl_fd process_mrelease statmount listmount lsm_get_self_attr
    lsm_set_self_attr lsm_list_modules vmsplice
""".split()
# Calls that fail with ENOSYS, which libraries handle. io_uring would connect without the filter. clone3 and
# openat2 hide their flags behind a pointer; libraries then use clone and openat. The others allocate memory
# that belongs to no process: segments, queues and semaphores of System V (2 MB per set of semaphores),
# inotify queues, Landlock rules. sendfile, splice and tee put a page of a file into a buffer that counts as
# one byte; libraries then read and write.
_ABSENT_CALLS: Final = """
    io_uring_setup io_uring_enter io_uring_register io_setup io_submit memfd_create memfd_secret shmget shmat msgget
    mq_open clone3 openat2 sendfile splice tee inotify_init inotify_init1 semget semctl semtimedop semop msgsnd msgrcv
    msgctl shmctl shmdt landlock_create_ruleset landlock_add_rule landlock_restrict_self
""".split()

# Extended attributes: of a file in memory, the kernel holds 64 kB each, and many before the next check.
_ATTRIBUTES: Final = ("setxattr", "lsetxattr", "fsetxattr")

# CLONE_NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET; NEWTIME shares its bit with the signal of clone.
_NAMESPACES: Final = 0x7E020000
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
_STREAM, _DATAGRAM, _PACKETS = 1, 2, 5
_SOCKET_TYPE: Final = 0xF
_FASTOPEN: Final = 0x20000000  # MSG_FASTOPEN: connects while it sends
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_INTERFACE_IOCTLS: Final = 0x8900  # SIOC*: of sockets and interfaces
_S_IFMT, _S_IFCHR, _S_IFBLK = 0xF000, 0x2000, 0x6000
_SOL_SOCKET: Final = 1
_BUFFERS: Final = (7, 8, 32, 33)  # SO_SNDBUF SO_RCVBUF SO_SNDBUFFORCE SO_RCVBUFFORCE
# SO_ZEROCOPY SO_RESERVE_MEM SO_ATTACH_FILTER SO_ATTACH_REUSEPORT_CBPF: of a filter, the kernel counts a third.
_UNCOUNTED_OPTIONS: Final = (60, 73, 26, 51)
_F_SETPIPE_SZ: Final = 1031
_F_OFD_SETLK, _F_OFD_SETLKW = 37, 38  # they stay with a file that is only mapped
_MAP_TYPE_OR_ANONYMOUS: Final = 0x2F
_MAP_SHARED_ANONYMOUS: Final = (0x21, 0x23)


# Without namespaces: calls on files that Landlock allows, and that the program may own. Changing modes and
# times appears to succeed, because many programs that copy files do it, and has no effect.
_FILE_CALLS: Final = """
    chmod fchmod fchmodat fchmodat2 chown lchown fchown fchownat utime utimes futimesat utimensat
""".split()
_FILE_CALLS_DENIED: Final = """
    truncate removexattr lremovexattr fremovexattr
    setsid setpgid pidfd_open pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo setpriority ioprio_set
    sched_setscheduler sched_setparam sched_setattr sched_setaffinity
""".split()


def call_number(call: str) -> int:
    """Return the number of a system call on this machine; -1 if it does not exist. KeyError on other
    machines."""
    return _NUMBERS[call][ARCHITECTURES[platform.machine()][1]]


def build_filter(
    *, sockets: tuple[int, ...], notified_calls: tuple[str, ...] = (), shared: bool = False
) -> bytes:
    """Return the filter of a program. It may create sockets of the families `sockets`; the kernel notifies us
    before the calls in `notified_calls`. `shared`: it has the host's namespaces, so datagrams with an address and calls
    that reach other processes or files by name are blocked."""
    rules = [*_denied_call_rules(), *_socket_rules(sockets, shared)]
    if shared:
        rules += [_rule_for_call(call, errno_action(0)) for call in _FILE_CALLS]
        rules += [_rule_for_call(call, errno_action(errno.EPERM)) for call in _FILE_CALLS_DENIED]
        # A process may query and lower its own limits; only pid 0 is certain to be itself.
        rules.append(
            _rule_for_call("prlimit64", errno_action(errno.EPERM), Condition(0, (0,), is_negated=True))
        )
    rules += [_rule_for_call(call, NOTIFY) for call in notified_calls]
    architecture = ARCHITECTURES[platform.machine()][0]
    return assemble(architecture, HIGHEST, [rule for rule in rules if rule.number != _ABSENT], ALLOW)


def _rule_for_call(call: str, action: int, *conditions: Condition) -> Rule:
    return Rule(call_number(call), action, conditions)


def _denied_call_rules() -> list[Rule]:
    denied, absent = errno_action(errno.EPERM), errno_action(errno.ENOSYS)
    return [
        *(_rule_for_call(call, denied) for call in _DENIED),
        *(_rule_for_call(call, absent) for call in _ABSENT_CALLS),
        *(_rule_for_call(call, errno_action(errno.EOPNOTSUPP)) for call in _ATTRIBUTES),
        # A second listener could respond instead of us. A second filter is harmless.
        _rule_for_call("seccomp", errno_action(errno.EBUSY), Condition(1, (0x8,), mask=0x8)),
        _rule_for_call("clone", denied, Condition(0, (0,), mask=_NAMESPACES, is_negated=True)),
        _rule_for_call("personality", denied, Condition(0, (0, 0xFFFFFFFF), is_negated=True)),
        # A setuid file would be stored in the outputs, a folder of the host.
        *(
            _rule_for_call(call, denied, Condition(at, (0,), mask=_SETUID_BITS, is_negated=True))
            for call, at in _MODES
        ),
        _rule_for_call("mknod", denied, Condition(1, (_S_IFCHR, _S_IFBLK), mask=_S_IFMT)),
        _rule_for_call("mknodat", denied, Condition(2, (_S_IFCHR, _S_IFBLK), mask=_S_IFMT)),
        _rule_for_call("ioctl", denied, Condition(1, (_TIOCSTI, _TIOCLINUX))),
        # Ways to allocate memory that no limit covers. Changing a buffer's size appears to succeed, as the kernel
        # also adjusts it (socket(7)).
        _rule_for_call("setsockopt", errno_action(0), Condition(1, (_SOL_SOCKET,)), Condition(2, _BUFFERS)),
        _rule_for_call(
            "setsockopt",
            errno_action(errno.ENOPROTOOPT),
            Condition(1, (_SOL_SOCKET,)),
            Condition(2, _UNCOUNTED_OPTIONS),
        ),
        _rule_for_call("fcntl", denied, Condition(1, (_F_SETPIPE_SZ,))),
        _rule_for_call("fcntl", errno_action(errno.EINVAL), Condition(1, (_F_OFD_SETLK, _F_OFD_SETLKW))),
        # Pages that remain after the process unmaps them. /dev/shm has a size limit.
        _rule_for_call("mmap", denied, Condition(3, _MAP_SHARED_ANONYMOUS, mask=_MAP_TYPE_OR_ANONYMOUS)),
        # A datagram stays with its receiver after the sender, to which it is charged, is closed.
        _rule_for_call(
            "socket", errno_action(errno.EPROTONOSUPPORT), *_unix_socket_except(_STREAM, _PACKETS)
        ),
        _rule_for_call(
            "socketpair", errno_action(errno.EPROTONOSUPPORT), *_unix_socket_except(_STREAM, _PACKETS)
        ),
        # Interfaces of the host. FIONREAD is elsewhere; SIOCATMARK concerns the stream only.
        _rule_for_call(
            "ioctl",
            denied,
            Condition(1, (_INTERFACE_IOCTLS,), mask=0xFF00),
            Condition(1, (0x8905,), is_negated=True),
        ),
    ]


def _unix_socket_except(*kinds: int) -> tuple[Condition, Condition]:
    return Condition(0, (AF_UNIX,)), Condition(1, kinds, mask=_SOCKET_TYPE, is_negated=True)


_SETUID_BITS: Final = 0o6000  # S_ISUID, S_ISGID
_MODES: Final = (
    ("chmod", 1), ("fchmod", 1), ("fchmodat", 2), ("fchmodat2", 2), ("open", 2), ("openat", 3), ("creat", 1),
    ("mknod", 1), ("mknodat", 2),
)  # fmt: skip


def _socket_rules(families: tuple[int, ...], shared: bool) -> list[Rule]:
    denied = errno_action(errno.EAFNOSUPPORT)
    internet = tuple(family for family in families if family in (AF_INET, AF_INET6))
    kinds = (_STREAM, _DATAGRAM)
    rules = [
        _rule_for_call("socket", denied, Condition(0, families, is_negated=True)),
        _rule_for_call("socketpair", denied, Condition(0, (AF_UNIX,), is_negated=True)),
        _rule_for_call(
            "socket",
            errno_action(errno.EPERM),
            Condition(0, (AF_NETLINK,)),
            Condition(2, (0,), is_negated=True),
        ),
        *(
            _rule_for_call(call, errno_action(errno.EOPNOTSUPP), Condition(at, (_FASTOPEN,), mask=_FASTOPEN))
            for call, at in _SENDING
        ),
    ]
    if shared:  # a datagram may have an address: only connected sockets, which were checked, are allowed
        rules += [
            _rule_for_call(
                "sendto", errno_action(errno.EACCES), Condition(4, (0,), is_negated=True, upper=half)
            )
            for half in (False, True)
        ]
        rules += [_rule_for_call(call, errno_action(errno.ENOSYS)) for call in ("sendmsg", "sendmmsg")]
        rules.append(_rule_for_call("socket", denied, *_unix_socket_except(_STREAM)))
    if internet:
        rules += [
            _rule_for_call(
                "socket",
                errno_action(errno.EPERM),
                Condition(0, internet),
                Condition(1, kinds, mask=_SOCKET_TYPE, is_negated=True),
            ),
            _rule_for_call(
                "socket",
                errno_action(errno.EPROTONOSUPPORT),
                Condition(0, internet),
                Condition(2, (0, 6, 17), is_negated=True),
            ),
        ]
    return rules


_SENDING: Final = (("sendto", 3), ("sendmsg", 2), ("sendmmsg", 3))


# _IOWR('!', 0, struct seccomp_notif), _IOWR('!', 1, seccomp_notif_resp), _IOW('!', 2, __u64), _IOW('!', 3, _addfd)
_RECEIVE, _RESPOND, _VALID, _INJECT = 0xC0502100, 0xC0182101, 0x40082102, 0x40182103
# --- Notifications ------------------------------------------------------------------------------------------

_NOTIFICATION: Final = struct.Struct("=QIIiIQ6Q")
_RESPONSE: Final = struct.Struct("=QqiI")
_ADD: Final = struct.Struct("=QIIII")
_CONTINUE: Final = 1
_REPLACE: Final = 1  # SECCOMP_ADDFD_FLAG_SETFD
_PIDFD_GETFD: Final = 438
_OPENAT2: Final = 437
_IN_ROOT: Final = 0x10 | 0x02  # RESOLVE_IN_ROOT, RESOLVE_NO_MAGICLINKS
_MAX_SOCKADDR_BYTES: Final = 128  # struct sockaddr_storage

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
    notification_id, thread, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
    return Notification(notification_id, thread, number, tuple(arguments))


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


def inject_descriptor(
    listener: int, notification: Notification, descriptor: int, *, close_on_exec: bool
) -> bool:
    """Replace the call's descriptor with one of ours. Return False if the caller has ended."""
    flags = os.O_CLOEXEC if close_on_exec else 0
    order = _ADD.pack(notification.id, _REPLACE, descriptor, notification.descriptor, flags)
    try:
        fcntl.ioctl(listener, _INJECT, bytearray(order), True)
    except OSError:
        return False
    return True


def sockaddr(notification: Notification) -> bytes:
    """Return a copy of the address in the call's second and third arguments. Raises OSError if it is invalid."""
    length = notification.arguments[2] & 0xFFFFFFFF
    if length > _MAX_SOCKADDR_BYTES:
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
    with open(f"/proc/{notification.thread}/status") as file:
        pid = next(int(line.split()[1]) for line in file if line.startswith("Tgid:"))
    process = os.pidfd_open(pid)
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


def call_libc(name: str, sock: socket.socket, *arguments: bytes | int) -> int:
    """Call a function of the C library on a socket. Return 0 or the error number. Python's functions would
    block."""
    c_arguments: list[Any] = [
        ctypes.c_char_p(argument) if isinstance(argument, bytes) else ctypes.c_int(argument)
        for argument in arguments
    ]
    if isinstance(arguments[0], bytes):  # an address, whose length follows
        c_arguments.append(ctypes.c_uint32(len(arguments[0])))
    return 0 if getattr(libc, name)(sock.fileno(), *c_arguments) == 0 else ctypes.get_errno()
