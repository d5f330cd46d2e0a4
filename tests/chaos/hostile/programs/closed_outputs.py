# 360 MB in a folder of the outputs that its owner cannot list.
import os
import time

os.mkdir(os.environ["OUTPUTS"] + "/d", 0o300)
os.chdir(os.environ["OUTPUTS"] + "/d")
for number in range(12):
    with open(str(number), "wb") as file:
        for _ in range(30):
            file.write(b"x" * (1 << 20))
time.sleep(60)
