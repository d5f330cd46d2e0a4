"""The last step before a program runs, inside its sandbox: drop all privileges, then execute the program.

Runs, compiled by the host's side, as `python -I -S -c ... <control>`: for speed, it imports only C modules of the
standard library, and it ignores the program's environment. `control` is the descriptor of a Unix socket to the host's
side:

    <- the plan               8 bytes of length, then marshalled settings
    -> b"s" with descriptors  the folders /proc and home, and sockets of the sandbox's network for our proxies
    <- b"g"                   go
    -> b"l" with a listener   for the kernel's notifications before the program connects; without it if not needed
"""

import _signal  # type: ignore[import-not-found]  # typeshed has no stub; `signal` takes longer to import
import _socket
import _thread
import ctypes
import marshal
import os
import resource
import sys
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 1, 24, 38, 47
PR_SET_CHILD_SUBREAPER = 36
FILE_ACCESS = 0x4007  # LANDLOCK_ACCESS_FS_: EXECUTE, WRITE_FILE, READ_FILE, TRUNCATE
SET_MODE_FILTER, NEW_LISTENER = 1, 8
AF_NETLINK, NETLINK_SOCK_DIAG = 16, 4

libc = ctypes.CDLL(None, use_errno=True)


class Program(ctypes.Structure):
    """struct sock_fprog."""

    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


def main() -> None:
    """Read the plan, apply it and execute the program."""
    control = _socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    plan = marshal.loads(receive(control, int.from_bytes(receive(control, 8), "little")))  # noqa: S302 - our own
    folders = [os.open(folder, os.O_RDONLY | os.O_DIRECTORY) for folder in plan["folders"]]
    send(control, b"s", [*folders, *serve(plan)])
    if control.recv(1) != b"g":  # the host's side has exited
        os._exit(1)
    if plan["watch"]:
        supervise_group(control)
    drop_privileges(plan)
    if plan["watch"]:
        libc.prctl(PR_SET_PDEATHSIG, _signal.SIGKILL, 0, 0, 0)
        if os.getppid() == 1:
            os._exit(1)
    for which, soft, hard in plan["limits"]:
        resource.setrlimit(which, (soft, hard))
    os.dup2(plan["output"], 1)
    os.dup2(plan["output"], 2)
    os.close(plan["output"])
    os.umask(0o022)
    os.chdir(plan["folder"])
    if plan["landlock"] is not None:
        apply_landlock(*plan["landlock"])
    if plan["filter"]:
        load_seccomp_filter(plan, control)
    else:
        send(control, b"l", [])
    try:
        os.execvpe(plan["command"][0], plan["command"], plan["env"])
    except OSError as error:
        os.write(2, f"{plan['command'][0]}: {error.strerror}\n".encode())
        os._exit(127)


def supervise_group(control: _socket.socket) -> None:
    """Without a PID namespace: fork, continue in the child, and let the parent kill the whole group when the
    host's side ends. The child's exit code becomes ours."""
    parent = os.getppid()
    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)
    _signal.signal(_signal.SIGHUP, lambda *_: os.killpg(0, _signal.SIGKILL))
    libc.prctl(PR_SET_PDEATHSIG, _signal.SIGHUP, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)  # the processor time of orphans is then kept with us
    child = os.fork()
    if child == 0:
        _signal.signal(_signal.SIGTERM, _signal.SIG_DFL)
        _signal.signal(_signal.SIGHUP, _signal.SIG_DFL)
        return
    control.close()
    while True:
        ended, status = os.wait()
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def apply_landlock(handled: int, rules: "tuple[Any, ...]") -> None:
    """Apply Landlock: of the kinds of access in `handled`, allow only what the rules grant below their paths."""
    ruleset = libc.syscall(444, ctypes.byref(ctypes.c_uint64(handled)), 8, 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "landlock_create_ruleset")
    for path, access in rules:
        if path == "/proc/self":
            path = f"/proc/{os.getpid()}"
        try:
            beneath = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        # struct landlock_path_beneath_attr, packed; a file takes no rights of folders.
        folder = os.stat(path).st_mode & 0o170000 == 0o040000
        rule = (access if folder else access & FILE_ACCESS).to_bytes(8, "little") + beneath.to_bytes(
            4, "little"
        )
        if libc.syscall(445, ruleset, 1, rule, 0) != 0:
            raise OSError(ctypes.get_errno(), f"landlock_add_rule: {path}")
        os.close(beneath)
    if libc.syscall(446, ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "landlock_restrict_self")
    os.close(ruleset)


def receive(control: _socket.socket, count: int) -> bytes:
    """Receive `count` bytes."""
    out = b""
    while len(out) < count:
        got = control.recv(count - len(out))
        if not got:
            os._exit(1)
        out += got
    return out


def serve(plan: "dict[str, Any]") -> list[_socket.socket]:
    """Create sockets in the sandbox's network: one for sock_diag(7), datagram sockets for DNS, stream sockets
    for connections to forward."""
    sockets = []
    for kind, host, port in plan["serve"]:
        if kind == "diagnostics":
            sockets.append(_socket.socket(AF_NETLINK, _socket.SOCK_RAW, NETLINK_SOCK_DIAG))
            continue
        family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
        one = _socket.socket(family, _socket.SOCK_DGRAM if kind == "datagram" else _socket.SOCK_STREAM)
        if kind == "stream":
            one.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
        one.bind((host, port))
        if kind == "stream":
            one.listen(128)
        sockets.append(one)
    return sockets


def send(control: _socket.socket, message: bytes, sockets: "Sequence[_socket.socket | int]") -> None:
    """Send a message with the descriptors of sockets."""
    descriptors = array("i", [socket if isinstance(socket, int) else socket.fileno() for socket in sockets])
    ancillary = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, descriptors)] if descriptors else []
    control.sendmsg([message], ancillary)
    for socket in sockets:
        if isinstance(socket, int):
            os.close(socket)
        else:
            socket.close()


def drop_privileges(plan: "dict[str, Any]") -> None:
    """Switch to the program's user and drop all capabilities permanently. Does nothing in `plain`."""
    if plan["keep"]:
        return
    for capability in range(64):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.prctl(PR_CAP_AMBIENT, 4, 0, 0, 0)  # PR_CAP_AMBIENT_CLEAR_ALL
    if plan["user"] is not None:
        os.setgroups([])
        os.setresgid(plan["user"], plan["user"], plan["user"])
        os.setresuid(plan["user"], plan["user"], plan["user"])
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    if libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_NO_NEW_PRIVS)")


def load_seccomp_filter(plan: "dict[str, Any]", control: _socket.socket) -> None:
    """Load the seccomp filter, which then applies to this thread. Another thread, to which it does not apply,
    sends the listener, because sending may trigger a notification."""
    code = ctypes.create_string_buffer(plan["filter"], len(plan["filter"]))
    program = Program(len(plan["filter"]) // 8, ctypes.cast(code, ctypes.c_void_p))
    number, flags = plan["seccomp"], NEW_LISTENER if plan["listen"] else 0
    listener: list[int] = []
    loaded, sent = _thread.allocate_lock(), _thread.allocate_lock()
    loaded.acquire()
    sent.acquire()

    def hand_out() -> None:
        loaded.acquire()
        send(control, b"l", listener)
        sent.release()

    _thread.start_new_thread(hand_out, ())
    found = libc.syscall(number, SET_MODE_FILTER, flags, ctypes.byref(program))
    if found < 0:
        os.write(2, f"seccomp: error {ctypes.get_errno()}\n".encode())
        os._exit(126)
    if plan["listen"]:
        listener.append(found)
    loaded.release()
    sent.acquire()


main()
