# Changes the address, and the socket, while the connection is judged.
import ctypes
import os
import socket
import struct
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


def pack(port):
    return struct.pack("=H", 2) + struct.pack("!H", port) + socket.inet_aton("127.0.0.1") + bytes(8)


good, bad = pack(int(os.environ["API"])), pack(int(os.environ["CANARY"]))
unix = struct.pack("=H", 1) + b"\0nobody" + bytes(7)
memory = ctypes.create_string_buffer(good, 16)
until = time.monotonic() + 2


def flip():
    while time.monotonic() < until:
        for item in (bad, good, unix):
            ctypes.memmove(memory, item, 16)


threading.Thread(target=flip).start()
# A socket of the host's that has lost its connection: what a swap would want.
kept = socket.create_connection(("127.0.0.1", int(os.environ["API"])))
kept.setblocking(False)  # it must not wait where the service takes no more connections
libc.connect(kept.fileno(), struct.pack("=H", 0) + bytes(14), 16)
place = os.dup(kept.fileno())


def swap():
    while time.monotonic() < until:
        fresh = socket.socket(socket.AF_UNIX)
        os.dup2(fresh.fileno(), place)
        os.dup2(kept.fileno(), place)
        fresh.close()


threading.Thread(target=swap).start()
count = 0
while time.monotonic() < until:
    one = socket.socket()
    one.setblocking(False)
    libc.connect(one.fileno(), memory, 16)
    libc.connect(place, memory, 16)
    libc.connect(kept.fileno(), struct.pack("=H", 0) + bytes(14), 16)
    one.close()
    count += 1
print("tried", count > 2)
