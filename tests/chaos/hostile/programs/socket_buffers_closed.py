# 500 MB in buffers of sockets, in small messages. The sender of each is closed: no descriptor leads to the data.
import os
import socket
import time

held, took = [], 0
for _ in range(9):
    if os.fork() == 0:
        break
for _ in range(240):
    try:
        one, other = socket.socketpair()
    except OSError:
        break
    one.setblocking(False)
    try:
        while True:
            took += 768 * (one.send(b"x") > 0)
    except OSError:
        pass
    one.close()
    held.append(other)
print("took", took >> 20, flush=True)
time.sleep(60)
