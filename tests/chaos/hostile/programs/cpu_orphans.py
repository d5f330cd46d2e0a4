# Processor time of orphans, none of which lives as long as the time between two looks.
import os
import time

end = time.time() + 60
while time.time() < end:
    read, write = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            if os.fork() == 0:
                while time.process_time() < 0.03:
                    pass
            os._exit(0)
    os.close(write)
    os.wait()
    os.wait()
    os.read(read, 1)  # until both have ended
    os.close(read)
print("GOT IN: nobody counted them")
