# The same through a socket that is itself being passed through another socket.
import os
import socket
import time

outer, end = socket.socketpair()
inner, back = socket.socketpair()
for number in range(10):
    path = f"{os.environ['OUTPUTS']}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    os.unlink(path)
    socket.send_fds(inner, [b"x"], [file])
    for _ in range(30):
        os.write(file, b"x" * (1 << 20))
    os.close(file)
socket.send_fds(outer, [b"x"], [back.fileno()])
back.close()
time.sleep(60)
