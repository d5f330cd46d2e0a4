import os
import tempfile

for number in range(10_000_000):
    os.mknod(f"{tempfile.gettempdir()}/{number}")
print("GOT IN: ten million")
