"""Starts a lab's program and stays, to be killed: `python -m tests.jobs.sandbox_keeper <mode> <folder> <token>`."""

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from jobs.sandbox import mode, start
from tests.jobs.sandboxing import Lab


def main() -> None:
    way = mode(sys.argv[1])
    box = Lab(Path(sys.argv[2]), way).box
    handle = start(replace(box, env={"TOKEN": sys.argv[3]}), way, os.open(os.devnull, os.O_WRONLY))
    print("started", flush=True)
    time.sleep(60)
    handle.close()


if __name__ == "__main__":
    main()
