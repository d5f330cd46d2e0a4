import os

for number in range(10_000_000):
    os.mknod(f"{os.environ['OUTPUTS']}/{number}")
print("GOT IN: ten million")
