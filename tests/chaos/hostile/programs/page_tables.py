# One page read every two megabytes: nothing is resident, and the kernel takes a page for each.
import ctypes
import mmap
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
NORESERVE = 0x4000
for _ in range(6):
    if os.fork() == 0:
        break
size = 40 << 30  # 80 MB of page tables for each of seven processes
start = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | NORESERVE, -1, 0)
if start in (None, ctypes.c_void_p(-1).value):
    print("closed", ctypes.get_errno())
else:
    libc.madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), 15)  # MADV_NOHUGEPAGE
    for place in range(start, start + size, 2 << 20):
        ctypes.string_at(place, 1)
    print("took", size // 512 >> 20, flush=True)
time.sleep(60)
