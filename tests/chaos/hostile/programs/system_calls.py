import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
x86 = platform.machine() == "x86_64"
buffer = ctypes.create_string_buffer(4096)
calls = {
    "io_uring_setup": (425, 8, buffer),
    "bpf": (321 if x86 else 280, 0, buffer, 120),
    "userfaultfd": (323 if x86 else 282, 1),
    "perf_event_open": (298 if x86 else 241, buffer, 0, -1, -1, 0),
    "keyctl": (250 if x86 else 219, 0, -3, 1),
    "add_key": (248 if x86 else 217, b"user", b"x", b"y", 1, -3),
    "unshare": (272 if x86 else 97, 0x10000000),
    "unshare net": (272 if x86 else 97, 0x40000000),
    "setns": (308 if x86 else 268, 0, 0),
    "mount": (165 if x86 else 40, b"none", b"/tmp", b"tmpfs", 0, None),
    "umount": (166 if x86 else 39, b"/proc", 2),
    "pivot_root": (155 if x86 else 41, b"/", b"/"),
    "chroot": (161 if x86 else 51, b"/tmp"),
    "ptrace me": (101 if x86 else 117, 0, 0, 0, 0),
    "open_tree": (428, -100, b"/", 1),
    "fsopen": (430, b"tmpfs", 0),
    "move_mount": (429, -100, b"/", -100, b"/tmp", 0),
    "mount_setattr": (442, -100, b"/", 0, buffer, 32),
    "clone3": (435, buffer, 88),
    "memfd_secret": (447, 0),
    "kexec_load": (246 if x86 else 104, 0, 0, 0, 0),
    "init_module": (175 if x86 else 105, buffer, 10, b""),
    "settimeofday": (164 if x86 else 170, buffer, 0),
    "sethostname": (170 if x86 else 161, b"x", 1),
    "quotactl": (179 if x86 else 60, 0, 0, 0, 0),
    "pidfd_getfd": (438, 0, 0, 0),
    "name_to_handle_at": (303 if x86 else 264, -100, b"/", buffer, buffer, 0),
    "process_madvise": (440, 0, 0, 0, 0, 0),
    "fanotify_init": (300 if x86 else 262, 0, 0),
    "syslog": (103 if x86 else 116, 3, buffer, 100),
    "a listener": (317 if x86 else 277, 1, 8, buffer),
    "not invented yet": (500,),
}
for name, call in calls.items():
    found = libc.syscall(*call)
    # 1 EPERM, 16 EBUSY (a listener is there), 38 ENOSYS: refused, and not because the arguments are wrong.
    print(
        f"GOT IN: {name} {found} {ctypes.get_errno()}"
        if found >= 0 or ctypes.get_errno() not in (1, 16, 38)
        else f"closed {name}"
    )
NEWUSER = 0x10000000
if libc.syscall(56 if x86 else 220, NEWUSER | 17, 0, 0, 0, 0) >= 0:
    print("GOT IN: clone")
print("tried")
