# 360 MB in the 40th folder within home.
import os
import time

for _ in range(40):
    os.mkdir("d")
    os.chdir("d")
for number in range(12):
    with open(str(number), "wb") as file:
        for _ in range(30):
            file.write(b"x" * (1 << 20))
time.sleep(60)
