# 300 MB of output files that are deleted while one of their pages is mapped, so they are not listed in the folder.
import ctypes
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
for number in range(10):
    path = f"{os.environ['OUTPUTS']}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(30):
        os.write(file, b"x" * (1 << 20))
    libc.mmap(None, 4096, 1, 1, file, 0)
    os.close(file)
    os.unlink(path)
print("took 300", flush=True)
time.sleep(60)
