"""The seccomp filter, run by a small interpreter; addresses, and outputs."""

from __future__ import annotations

import errno
import ipaddress
import os
import platform
import socket
import struct
import subprocess
import sys

import pytest

from jobs.sandbox import network_access, outputs, seccomp
from jobs.sandbox.seccomp import ALLOW, KILL, NOTIFY, Condition, Rule, assemble, errno_action

X86 = 0xC000003E


def verdict(program: bytes, number: int, *arguments: int, architecture: int = X86) -> int:
    """Return the result of a filter for a system call, with the assembler's operations interpreted as in the kernel."""
    value = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(item % (1 << 64) for item in value))
    code = list(struct.iter_unpack("=HBBI", program))
    at = stored = 0
    while True:
        operation, true, false, operand = code[at]
        at += 1
        if operation == 0x20:
            stored = struct.unpack_from("=I", data, operand)[0]
        elif operation == 0x54:
            stored &= operand
        elif operation == 0x06:
            return operand
        else:
            at += true if (stored == operand if operation == 0x15 else stored > operand) else false


def test_first_rule_that_holds_decides():
    program = assemble(
        X86, 400, [Rule(5, errno_action(1), (Condition(1, (7, 9)),)), Rule(5, NOTIFY), Rule(6, KILL)], ALLOW
    )
    assert verdict(program, 5, 0, 7) == verdict(program, 5, 0, 9) == errno_action(1)
    assert verdict(program, 5, 7, 8) == NOTIFY
    assert (verdict(program, 6), verdict(program, 7)) == (KILL, ALLOW)


def test_conditions_hold_together_and_their_opposite_is_sayable():
    both = (Condition(0, (1, 2, 3), is_negated=True), Condition(2, (0x10,), mask=0xF0))
    program = assemble(X86, 400, [Rule(5, errno_action(13), both)], ALLOW)
    assert verdict(program, 5, 4, 0, 0x1F) == errno_action(13)
    assert verdict(program, 5, 2, 0, 0x1F) == verdict(program, 5, 4, 0, 0x2F) == ALLOW


def test_the_upper_half_of_an_argument_is_checked_on_request():
    program = assemble(X86, 400, [Rule(5, KILL, (Condition(4, (0,), is_negated=True, upper=True),))], ALLOW)
    assert verdict(program, 5, 0, 0, 0, 0, 1 << 32) == KILL
    assert verdict(program, 5, 0, 0, 0, 0, 0xFFFFFFFF) == ALLOW


def test_foreign_architectures_and_calls_of_x32_end_the_process_and_new_calls_are_not_there():
    program = assemble(X86, 400, [], ALLOW)
    assert verdict(program, 1, architecture=0x40000003) == KILL
    assert verdict(program, 0x40000000 | 1) == verdict(program, -1) == KILL
    assert verdict(program, 401) == errno_action(errno.ENOSYS)
    assert verdict(program, 400) == ALLOW


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
@pytest.mark.parametrize("shared", [False, True])
def test_filter_of_a_program_on_each_machine(machine, shared, monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: machine)
    architecture = seccomp.ARCHITECTURES[machine][0]
    program = seccomp.build_filter(sockets=(1, 2, 10), notified_calls=("connect",), shared=shared)
    assert len(program) // 8 < 4096  # BPF_MAXINSNS

    def says(call: str, *arguments: int) -> int:
        return verdict(program, seccomp.call_number(call), *arguments, architecture=architecture)

    no, absent = errno_action(errno.EPERM), errno_action(errno.ENOSYS)
    assert says("connect", 3, 0, 16) == NOTIFY
    assert {says(call) for call in ("ptrace", "mount", "unshare", "setns", "keyctl", "bpf")} == {no}
    assert {says(call) for call in ("io_uring_setup", "clone3", "memfd_create", "shmget")} == {absent}
    assert says("clone", 0x10000000 | 17) == says("clone", 0x40000000 | 17) == no
    assert says("clone", 0x1200011) == ALLOW  # fork of the C library
    assert says("clone", 0x3D0F00) == ALLOW  # a thread of the C library
    assert says("socket", 17, 3, 0) == errno_action(errno.EAFNOSUPPORT)  # packets
    assert says("socket", 2, 3, 1) == no  # raw
    assert says("socket", 2, 1 | socket.SOCK_CLOEXEC, 6) == ALLOW
    assert says("socket", 2, 1, 262) == errno_action(errno.EPROTONOSUPPORT)  # MPTCP
    assert says("sendto", 3, 1, 1, 0x20000000) == errno_action(errno.EOPNOTSUPP)
    assert says("sendto", 3, 1, 1, 0x4000, 0) == ALLOW
    assert says("sendto", 3, 1, 1, 0, 0x7FFF00000000) == (errno_action(errno.EACCES) if shared else ALLOW)
    assert says("ioctl", 0, 0x5412) == says("ioctl", 3, 0x8912) == no  # TIOCSTI, SIOCGIFCONF
    assert says("ioctl", 0, 0x541B) == ALLOW  # FIONREAD
    assert says("fchmodat", 0, 0, 0o4755) == no
    assert says("fchmodat", 0, 0, 0o755) == (errno_action(0) if shared else ALLOW)
    assert says("openat", 0, 0, 0x41, 0o2644) == no
    assert says("setsid") == (no if shared else ALLOW)
    assert {says("setsockopt", 3, 1, option) for option in (7, 8, 32, 33)} == {errno_action(0)}
    assert says("setsockopt", 3, 1, 9) == says("setsockopt", 3, 6, 7) == ALLOW  # SO_KEEPALIVE; of TCP
    assert says("mmap", 0, 4096, 3, 0x21) == says("mmap", 0, 4096, 3, 0x4021) == no
    assert says("mmap", 0, 4096, 3, 0x22) == says("mmap", 0, 4096, 3, 0x01, 5) == ALLOW
    assert says("fcntl", 3, 1031) == no
    assert says("fcntl", 3, 6) == says("fcntl", 3, 1030) == ALLOW  # F_SETLK, F_DUPFD_CLOEXEC
    assert says("socket", 1, 2) == says("socketpair", 1, 3) == errno_action(errno.EPROTONOSUPPORT)
    assert says("socketpair", 1, 1 | socket.SOCK_CLOEXEC) == ALLOW
    closed = (
        "sendfile splice tee inotify_init1 semget semctl semop msgsnd shmctl landlock_create_ruleset".split()
    )
    assert {says(call) for call in closed} == {absent}


CLOSED = """
    127.0.0.1 127.255.255.254 0.0.0.0 0.0.0.1 10.0.0.1 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 100.64.0.1
    100.127.255.255 100.100.100.200 168.63.129.16 192.0.0.192 192.0.2.1 198.18.0.1 203.0.113.80 224.0.0.1 240.0.0.1
    255.255.255.255 192.88.99.1 ::1 :: fe80::1 fc00::1 fd00:ec2::254 fd20:ce::254 ff02::1 2001::1 2001:db8::1 3fff::1
    2002:7f00:1:: 2002:a9fe:a9fe::
    64:ff9b::7f00:1 64:ff9b::a9fe:a9fe 64:ff9b::a83f:8110 64:ff9b:1::1 ::127.0.0.1 fec0::1
    ::ffff:127.0.0.1 ::ffff:169.254.169.254 ::ffff:10.0.0.1 5f00::1 4000::1
""".split()


@pytest.mark.parametrize("written", CLOSED)
def test_an_address_is_blocked_in_any_notation(written):
    assert not network_access.is_allowed(network_access.unmap_ipv4(ipaddress.ip_address(written)), ())


@pytest.mark.parametrize(
    "written", ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_address_is_open(written):
    assert network_access.is_allowed(network_access.unmap_ipv4(ipaddress.ip_address(written)), ())


def test_operator_opens_a_network_but_not_the_metadata_in_it():
    assert reaches("10.1.2.3", ["10.0.0.0/8"])
    assert not reaches("10.1.2.3", ["10.2.0.0/16"])
    assert not reaches("169.254.169.254", ["169.0.0.0/8"])
    assert not reaches("169.254.169.254", ["169.254.169.254/32"])


@pytest.mark.parametrize(
    "written",
    "169.254.169.254 168.63.129.16 100.100.100.200 192.0.0.192 fd00:ec2::254 fe80::1 ::ffff:169.254.169.254 "
    "64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 ::169.254.169.254 0.0.0.0 :: ::ffff:0.0.0.0".split(),
)
def test_metadata_stays_closed_where_every_address_is_opened(written):
    assert not reaches(written, ["0.0.0.0/0", "::/0"])


@pytest.mark.parametrize(
    "written", ["10.1.2.3", "127.0.0.7", "::1", "fd12::1", "::ffff:10.1.2.3", "64:ff9b::a01:203", "8.8.8.8"]
)
def test_other_addresses_are_reached_where_every_address_is_opened(written):
    assert reaches(written, ["0.0.0.0/0", "::/0"])


@pytest.mark.parametrize("hidden", ["127.0.0.1", "0.0.0.0", "::1", "::", "localhost"])
@pytest.mark.parametrize(
    "written", ["127.0.0.1", "127.0.0.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"]
)
def test_the_port_of_a_part_on_this_machine_is_closed_at_all_addresses_of_the_machine(written, hidden):
    every = ["0.0.0.0/0", "::/0"]
    assert reaches(written, every, [(hidden, 6380)], port=6379)
    assert not reaches(written, every, [(hidden, 6379)], port=6379)


def test_a_part_elsewhere_is_closed_at_its_own_address_unless_that_is_public(monkeypatch):
    every = ["0.0.0.0/0"]
    names = {"db.internal": ["10.0.0.5", "10.0.0.6"], "s3.example": ["198.51.100.7", "8.8.8.8"]}

    def resolve(host, *_, **__):
        return [(2, 1, 6, "", (item, 0)) for item in names[host]]

    monkeypatch.setattr(network_access.socket, "getaddrinfo", resolve)
    hidden = [("db.internal", 5432), ("s3.example", 443), ("172.30.7.0/24", 8000)]
    result = {
        (host, port): reaches(host, every, hidden, port=port)
        for host in ("10.0.0.5", "10.0.0.6", "10.0.0.7", "8.8.8.8", "172.30.7.9", "172.30.8.9")
        for port in (5432, 443, 8000)
    }
    assert {place for place, allowed in result.items() if not allowed} == {
        ("10.0.0.5", 5432), ("10.0.0.6", 5432), ("172.30.7.9", 8000),
    }  # fmt: skip


def test_a_port_of_ours_is_closed_at_the_public_address_of_this_machine(monkeypatch):
    monkeypatch.setattr(
        network_access, "is_on_this_machine", lambda item: str(item) in ("0.0.0.0", "8.8.8.8")
    )
    assert not reaches("8.8.8.8", (), [("0.0.0.0", 6379)], port=6379)
    assert reaches("8.8.8.8", (), [("0.0.0.0", 6379)], port=443)
    assert reaches("8.8.4.4", (), [("0.0.0.0", 6379)], port=6379)


def reaches(written, networks, hidden=(), port=80):
    """Whether a program connects to an address, as the kernel would hand it over."""
    return network_access.AllowedAddresses(networks, hidden).allows(
        network_access.unmap_ipv4(ipaddress.ip_address(written)), port
    )


def test_kernel_addresses_are_parsed_and_invalid_ones_are_none():
    four = struct.pack("=H", 2) + struct.pack("!H", 80) + bytes([10, 0, 0, 1]) + bytes(8)
    assert (str(network_access.parse_sockaddr(four).address), network_access.parse_sockaddr(four).port) == (
        "10.0.0.1",
        80,
    )
    six = (
        struct.pack("=H", 10)
        + struct.pack("!HI", 443, 0)
        + ipaddress.IPv6Address("::ffff:10.0.0.1").packed
        + bytes(4)
    )
    assert str(network_access.parse_sockaddr(six).address) == "10.0.0.1"
    assert [
        network_access.parse_sockaddr(item)
        for item in (b"", b"\2", four[:8], six[:20], struct.pack("=H", 17) + bytes(30))
    ] == [None] * 5


def test_outputs_are_private_regular_files(tmp_path):
    folder = tmp_path / "outputs"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "b.txt").write_text("b")
    (folder / "a.txt").write_text("a")
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    os.link(tmp_path / "secret", folder / "hard")
    os.mkfifo(folder / "pipe")
    found = outputs.files(folder)
    assert [str(path.relative_to(folder)) for path in found] == ["a.txt", "deep/b.txt"]
    opened = outputs.open_file(folder, found[1])
    assert os.read(opened, 10) == b"b"
    os.close(opened)


def test_output_that_becomes_something_else_is_not_opened(tmp_path):
    folder = tmp_path / "outputs"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a.txt").write_text("a")
    (found,) = outputs.files(folder)
    found.unlink()
    found.symlink_to("/etc/passwd")
    with pytest.raises(OSError, match="symbolic links"):
        outputs.open_file(folder, found)
    found.unlink()
    os.mkfifo(found)
    with pytest.raises(OSError, match="hard links or is not"):
        outputs.open_file(folder, found)
    found.unlink()
    (folder / "deep").rmdir()
    (folder / "deep").symlink_to("/etc")
    with pytest.raises(OSError, match=r"directory|symbolic"):
        outputs.open_file(folder, folder / "deep" / "passwd")


def test_the_size_counts_disk_usage_and_each_file_once(tmp_path):
    (tmp_path / "one").write_bytes(b"x" * 100_000)
    os.link(tmp_path / "one", tmp_path / "two")
    size, count = outputs.disk_usage(tmp_path)
    assert 100_000 <= size < 200_000
    assert count == 2


def test_unreadable_folders_count_as_too_large(tmp_path):
    deep = tmp_path / "deep"
    deep.joinpath(*["d"] * outputs.MAX_DEPTH).mkdir(parents=True)
    assert outputs.disk_usage(deep)[1] == outputs.MAX_DEPTH
    deep.joinpath(*["d"] * (outputs.MAX_DEPTH + 1)).mkdir()
    assert outputs.disk_usage(deep)[1] > outputs.MAX_FILES
    long = tmp_path / "long"
    long.mkdir()
    here = os.getcwd()
    try:
        os.chdir(long)
        for _ in range(20):
            os.mkdir("d" * 250)
            os.chdir("d" * 250)
    finally:
        os.chdir(here)
    assert outputs.disk_usage(long)[1] > outputs.MAX_FILES
    outputs.remove(long)


def test_deep_and_protected_folders_are_removed_and_link_targets_stay(tmp_path):
    stored = tmp_path / "kept"
    stored.mkdir(mode=0o755)
    (stored / "file").write_text("x")
    (stored / "file").chmod(0o640)
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to(stored)
    (folder / "hard").symlink_to(stored / "file")
    os.mkfifo(folder / "pipe")
    here = os.getcwd()
    try:
        os.chdir(folder)
        for _ in range(3_000):
            os.mkdir("d")
            os.symlink(stored, "link-down")
            os.chdir("d")
    finally:
        os.chdir(here)
    closed = folder / "closed" / "below"
    closed.mkdir(parents=True)
    (closed / "file").write_text("x")
    closed.chmod(0)
    closed.parent.chmod(0)
    folder.chmod(0o500)
    outputs.remove(folder)
    assert not folder.exists()
    assert [(stored / "file").read_text(), (stored / "file").stat().st_mode & 0o777] == ["x", 0o640]
    assert stored.stat().st_mode & 0o777 == 0o755


def test_the_sandbox_imports_nothing_of_the_application():
    code = "import sys, jobs.sandbox; print([one for one in sys.modules if one.split('.')[0] in ('webapp', 'flask')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
