# 300 MB of output files that are deleted while they are open, so they are not listed in the folder.
import os
import time

for number in range(10):
    path = f"{os.environ['OUTPUTS']}/{number}"
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    for _ in range(30):
        os.write(file, b"x" * (1 << 20))
    os.unlink(path)
print("took 300", flush=True)
time.sleep(60)
