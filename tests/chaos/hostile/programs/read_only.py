import os
import sys

outputs = os.environ["OUTPUTS"]
wanted = [
    "/usr/lib/x",
    "/usr/bin/python3",
    "/etc/passwd",
    "/x",
    "/proc/sys/kernel/core_pattern",
    "/proc/sysrq-trigger",
    f"{os.environ['UPLOADS']}/given.txt",
    f"{os.environ['UPLOADS']}/new",
    f"{os.environ['VIRTUAL_ENV']}/bin/x",
    "main.py",
    f"{sys.base_prefix}/x",
    "/dev/x",
]
for path in wanted:
    try:
        open(path, "w").close()
        print("GOT IN:", path)
    except OSError as error:
        print("closed", path, error)
for path in (os.environ["UPLOADS"], outputs):
    try:
        os.rename(path, path + "-x")
        print("GOT IN: rename", path)
    except OSError as error:
        print("closed", error)
# Folders of that name may be its own; whether it was the host's that changed is seen there.
for path in (f"{os.environ['HOST_FOLDER']}/x", f"{outputs}/../x", os.environ["HOST_SECRET"]):
    try:
        with open(path, "w") as file:
            file.write("changed")
    except OSError as error:
        print("closed", path, error)
print("tried")
