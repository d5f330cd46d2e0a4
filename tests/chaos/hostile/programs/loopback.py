# ruff: noqa: B023
import os
import socket
import struct

port = int(os.environ["CANARY"])
spelled = [
    "127.0.0.1",
    "localhost",
    "0.0.0.0",
    "::1",
    "::",
    "::ffff:127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "127.255.255.254",
    "::ffff:7f00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "017700000001",
]
try:
    spelled += [socket.gethostname(), socket.getfqdn()]
except OSError:
    pass
for host in spelled:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            found = socket.getaddrinfo(host, port, type=kind)
        except OSError as error:
            print("closed", host, error)
            continue
        for family, kind, protocol, _, address in found:
            for blocking in (True, False):
                try:
                    with socket.socket(family, kind, protocol) as one:
                        one.settimeout(1 if blocking else 0)
                        if kind == socket.SOCK_DGRAM:
                            one.sendto(b"x", address)
                            one.connect(address)
                            one.send(b"x")
                        else:
                            one.connect(address)
                            print("GOT IN:", host)
                except OSError as error:
                    print("closed", host, error)
# Fast open connects while it sends; an address may also come with a message.
for flags in (0, 0x20000000):
    for make in (
        lambda item: item.sendto(b"x", flags, ("127.0.0.1", port)),
        lambda item: item.sendmsg([b"x"], [], flags, ("127.0.0.1", port)),
    ):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            try:
                with socket.socket(socket.AF_INET, kind) as one:
                    one.settimeout(1)
                    make(one)
            except OSError as error:
                print("closed", error)
try:
    with socket.socket(socket.AF_UNIX) as one:
        one.connect(f"\0canary-{port}")
        print("GOT IN: abstract")
except OSError as error:
    print("closed", error)
for path in (
    "/run/docker.sock",
    "/var/run/postgresql/.s.PGSQL.5432",
    "/run/dbus/system_bus_socket",
    "/dev/log",
    "/run/systemd/notify",
):
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(path)
            print("GOT IN:", path)
    except OSError as error:
        print("closed", path, error)
# On a socket that has been outside: the API is open.
with socket.create_connection(("127.0.0.1", int(os.environ["API"]))) as one:
    for again in (struct.pack("=H", 0) + bytes(14), None):
        import ctypes

        libc = ctypes.CDLL(None, use_errno=True)
        if again:
            libc.connect(one.fileno(), again, 16)
        try:
            one.connect(("127.0.0.1", port))
            print("GOT IN: again")
        except OSError as error:
            print("closed", error)
    try:
        one.bind(("0.0.0.0", 0))
        one.listen()
        print("GOT IN: listens at the host")
    except OSError as error:
        print("closed", error)
print("tried")
