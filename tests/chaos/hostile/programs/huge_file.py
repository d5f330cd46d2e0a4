import os

with open(f"{os.environ['OUTPUTS']}/huge", "wb", buffering=0) as file:
    try:
        os.posix_fallocate(file.fileno(), 0, 10 << 30)
        print("GOT IN: fallocate")
    except OSError as error:
        print("closed", error)
    written = 0
    while written < 10 << 30:
        written += file.write(b"x" * (1 << 20))
print("GOT IN: 10 GB")
