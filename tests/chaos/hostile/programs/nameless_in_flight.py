# 300 MB of deleted files that no process has open: their descriptors are on their way through a socket.
import os
import socket
import time

one, other = socket.socketpair()
for number in range(10):
    path = f"{os.environ['OUTPUTS']}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.unlink(path)
    socket.send_fds(one, [b"x"], [file])
    for _ in range(30):
        os.write(file, b"x" * (1 << 20))
    os.close(file)
time.sleep(60)
