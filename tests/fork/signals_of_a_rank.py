"""A rank that tells, a line each, of the signals that reach it; SIGTERM ends it."""

import os
import signal

TOLD = (signal.SIGCONT, signal.SIGTSTP, signal.SIGUSR1, signal.SIGUSR2)


def tell(number: int, frame: object) -> None:
    os.write(1, f"{signal.Signals(number).name}\n".encode())


for number in TOLD:
    signal.signal(number, tell)
os.write(1, b"ready\n")
while True:
    signal.pause()
