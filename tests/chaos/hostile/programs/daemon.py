# ruff: noqa: SIM115
# Forks twice into a new session, and its first parent exits.
import os
import time

if os.fork() == 0:
    try:
        os.setsid()
    except OSError:
        pass
    if os.fork() == 0:
        for descriptor in range(3):
            os.close(descriptor)
        while True:
            open(f"{os.environ['OUTPUTS']}/alive", "w").write(str(time.time()))
            time.sleep(0.1)
    os._exit(0)
time.sleep(0.5)
print("gone")
