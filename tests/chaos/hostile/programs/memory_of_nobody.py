# Memory that belongs to no process: unnamed files, segments, files in /dev/shm.
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
try:
    file = os.memfd_create("x")
    print("GOT IN: memfd_create")
except OSError as error:
    print("closed", error)
if libc.shmget(0, 1 << 30, 0o1600) >= 0:
    print("GOT IN: shmget")
written = 0
try:
    with open("/dev/shm/x", "wb", buffering=0) as file:
        while written < 10 << 30:
            written += file.write(b"x" * (1 << 20))
    print("GOT IN: /dev/shm")
except OSError as error:
    print("closed", written >> 20, error)
