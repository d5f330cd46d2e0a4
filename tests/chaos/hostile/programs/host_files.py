# ruff: noqa: SIM115
import os

tried = [
    os.environ["HOST_SECRET"],
    "/etc/shadow",
    "/etc/machine-id",
    "/root/.bash_history",
    "/var/lib/dpkg/status",
    "/proc/kcore",
    f"{os.environ['HOST_FOLDER']}/neighbour/code/main.py",
    f"{os.environ['NEIGHBOUR']}/uploads/given.txt",
    f"/proc/self/root{os.environ['HOST_SECRET']}",
    f"{os.environ['OUTPUTS']}/../../secret.txt",
    "/dev/sda",
    "/dev/vda",
    "/dev/mem",
]
for path in tried:
    try:
        with open(path, "rb") as file:
            file.read(10)
        print("GOT IN:", path)
    except OSError as error:
        print("closed", path, error)
for folder in (
    os.environ["HOST_FOLDER"],
    os.environ["NEIGHBOUR"],
    "/var",
    "/srv",
    "/opt",
    "/run",
    "/sys",
    "/mnt",
):
    try:
        seen = set(os.listdir(folder)) - {"hostile"}
        if seen:
            print("GOT IN:", folder, seen)
    except OSError as error:
        print("closed", folder, error)
link = f"{os.environ['OUTPUTS']}/link"
os.symlink(os.environ["HOST_SECRET"], link)
try:
    print("GOT IN:", open(link).read())
except OSError as error:
    print("closed", error)
try:
    os.truncate(os.environ["HOST_SECRET"], 0)
    print("GOT IN: truncate")
except OSError as error:
    print("closed", error)
