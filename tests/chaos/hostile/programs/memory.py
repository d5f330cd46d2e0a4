# ruff: noqa: PERF401
# Ten gigabytes, spread over processes so that no limit of one is reached.
import os
import time

for _ in range(10):
    if os.fork() == 0:
        held = []
        for _ in range(64):
            held.append(b"x" * (16 << 20))
        time.sleep(60)
time.sleep(60)
