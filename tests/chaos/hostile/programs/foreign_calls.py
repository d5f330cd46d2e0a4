# x32: the same processor under other numbers.
import ctypes
import os
import platform

if platform.machine() != "x86_64":
    os.kill(os.getpid(), 31)
ctypes.CDLL(None).syscall(0x40000000 + 39)
print("GOT IN: x32")
