# Connections that wait to be accepted, and whose callers are closed. Each holds a full buffer and no descriptor.
import os
import socket
import time

for _ in range(5):
    if os.fork() == 0:
        break
held, took = [], 0
for number in range(8):
    one = socket.socket(socket.AF_UNIX)
    path = f"{os.environ['HOME']}/{os.getpid()}-{number}"
    try:
        one.bind(path)
        one.listen(4096)
    except OSError:
        break
    held.append(one)
    for _ in range(140):
        if took > 100 << 20:
            break
        caller = socket.socket(socket.AF_UNIX)
        caller.setblocking(False)
        try:
            caller.connect(path)
            while True:
                took += caller.send(b"x" * 32768)
        except BlockingIOError:
            if caller.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                caller.close()
                continue
        except OSError:
            caller.close()
            break
print("took", took >> 20, flush=True)
time.sleep(60)
