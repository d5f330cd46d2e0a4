# 360 MB at a path that is longer than the kernel takes (PATH_MAX), in folders that are not deep.
import os
import time

os.chdir(os.environ["OUTPUTS"])
for _ in range(20):
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
for number in range(12):
    with open(str(number), "wb") as file:
        for _ in range(30):
            file.write(b"x" * (1 << 20))
time.sleep(60)
