# A file of /proc keeps a buffer for its largest record until it is closed: here a line for each of 1,800 items of
# epoll, in 230 files of each process.
import os
import select
import time


def take():
    poll = select.epoll()
    for item in [os.pipe()[0] for _ in range(10)]:
        for number in range(60, 240):
            os.dup2(item, number)
            poll.register(number, select.EPOLLIN)
    os.closerange(60, 240)
    stored = []
    try:
        while True:
            stored.append(os.open(f"/proc/self/fdinfo/{poll.fileno()}", os.O_RDONLY))
            os.read(stored[-1], 10)
    except OSError:
        time.sleep(60)


for _ in range(8):
    if os.fork() == 0:
        take()
take()
