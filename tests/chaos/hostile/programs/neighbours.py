# Kills and traces whom it finds.
import ctypes
import os
import signal

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
ATTACH, SEIZE = 16, 0x4206
own = {os.getpid(), os.getppid(), os.getpgid(0)}
for pid in [
    int(os.environ["WORKER"]),
    *range(1, 3000),
    *range(int(os.environ["WORKER"]) - 300, int(os.environ["WORKER"]) + 300),
]:
    if pid in own:
        continue
    for request in (ATTACH, SEIZE):
        if libc.ptrace(request, pid, None, None) == 0:
            print("GOT IN: ptrace", pid)
    try:
        os.kill(pid, signal.SIGKILL)
        print("GOT IN: kill", pid) if pid != 1 else None
    except OSError:
        pass
    try:
        os.kill(-pid, signal.SIGKILL)
        # -1 means all processes. The kernel reports success even if no process was signalled; the neighbour shows the
        # result.
        print("GOT IN: kill group", pid) if pid != 1 else None
    except OSError:
        pass
local = (ctypes.c_size_t * 2)(ctypes.addressof(ctypes.create_string_buffer(16)), 16)
for pid in (1, int(os.environ["WORKER"])):
    if libc.process_vm_readv(pid, local, 1, local, 1, 0) >= 0:
        print("GOT IN: process_vm_readv", pid)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
try:
    os.kill(-1, signal.SIGTERM)
except OSError as error:
    print("closed", error)
print("tried")
