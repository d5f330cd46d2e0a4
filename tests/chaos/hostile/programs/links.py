# ruff: noqa: SIM115
import os
import socket

folder = os.environ["OUTPUTS"]
os.makedirs(f"{folder}/deep")
open(f"{folder}/deep/good.txt", "w").write("good")
os.symlink(os.environ["HOST_SECRET"], f"{folder}/secret.txt")
os.symlink("/", f"{folder}/root")
os.symlink("deep", f"{folder}/shallow")
os.mkfifo(f"{folder}/pipe")
try:
    one = socket.socket(socket.AF_UNIX)
    os.chdir(folder)
    one.bind("socket")
except OSError:
    pass
for source in (f"{os.environ['UPLOADS']}/given.txt", "/etc/passwd", f"{folder}/deep/good.txt"):
    try:
        os.link(source, f"{folder}/hard-{os.path.basename(source)}", follow_symlinks=False)
    except OSError as error:
        print("closed", error)
os.unlink(f"{folder}/hard-good.txt")
for kind in (0o020666, 0o060666):
    try:
        os.mknod(f"{folder}/device", kind, os.makedev(1, 3))
        print("GOT IN: device")
    except OSError as error:
        print("closed", error)
print("tried")
