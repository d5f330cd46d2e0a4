# 600 MB in buffers of sockets, which are in no process's resident set. Several processes, so that descriptors suffice.
import os
import socket
import time

held = []


def fill(one, piece):
    one.setblocking(False)
    took = 0
    try:
        while took < 4 << 20:
            took += one.send(piece)
    except OSError:
        pass
    return took


took = 0
for _ in range(20):
    if os.fork() == 0:
        break
while took < 30 << 20:
    try:
        pair = socket.socketpair()
    except OSError:
        break
    held.append(pair)
    for one in pair:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF, 32, 33):
            try:
                one.setsockopt(socket.SOL_SOCKET, option, 4 << 20)
            except OSError:
                pass
        took += fill(one, b"x" * 65536)
print("took", took >> 20, flush=True)
time.sleep(60)
