import os

for number in range(10 * 1024):
    with open(f"{os.environ['OUTPUTS']}/{number}", "wb") as file:
        file.write(b"x" * (1 << 20))
print("GOT IN: 10 GB")
