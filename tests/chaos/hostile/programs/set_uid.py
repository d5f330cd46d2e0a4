# ruff: noqa: SIM115
import os
import stat
import subprocess

for folder in ("/usr/bin", "/usr/sbin", "/usr/lib", "/usr/libexec"):
    try:
        entries = list(os.scandir(folder))
    except OSError:
        continue
    for entry in entries:
        if (
            entry.is_file()
            and entry.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
            and entry.name in ("mount", "su", "passwd", "chsh", "newgrp")
        ):
            said = subprocess.run([entry.path, "--help"], capture_output=True, stdin=subprocess.DEVNULL)
            print("ran", entry.name, said.returncode)
said = subprocess.run(["su", "-c", "id -u"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
if said.stdout.strip() == "0":
    print("GOT IN: su")
path = f"{os.environ['OUTPUTS']}/tool"
open(path, "w").write("x")
try:
    os.chmod(path, 0o6777)
except OSError as error:
    print("closed", error)
try:
    os.close(os.open(path + "2", os.O_CREAT | os.O_WRONLY, 0o6777))
except OSError as error:
    print("closed", error)
for item in (path, path + "2"):
    if os.path.exists(item) and os.stat(item).st_mode & 0o6000:
        print("GOT IN: set-user-ID", item)
for call in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.setgroups([0])):
    try:
        call()
        print("GOT IN:", os.getresuid()) if 0 in os.getresuid() else None
    except OSError as error:
        print("closed", error)
