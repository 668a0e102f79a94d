"""A signal that asks to end is raised where it is said to be, also where Python would forget it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

HEAD = """
import os, signal, sys, time, weakref
from brigade import interrupt
def told():
    os.kill(os.getpid(), signal.SIGTERM)
class Dying:
    def __del__(self):
        told()
        for _ in range(100): pass
"""
#: what asks, in a place where what is raised is lost
LOST = {
    "destructor": "Dying()",
    "weak reference": "kept = {1}; watched = Dying.__new__(Dying)\n"
    "    Dying.__del__ = lambda self: None\n"
    "    seen = weakref.ref(watched, lambda _: told())\n"
    "    del watched",
    "none": "told()",
}


def said(program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", HEAD + program]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("where", LOST)
def test_it_is_raised_within_moments(where: str) -> None:
    done = said(
        f"""
begin = time.monotonic()
try:
  with interrupt.listening(), interrupt.promptly():
    {LOST[where]}
    time.sleep(30)
except interrupt.Interrupted as stop:
  print(stop.name, time.monotonic() - begin < 20)
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM True\n", "")


@pytest.mark.parametrize("where", LOST)
def test_or_at_the_end_of_what_was_done_meanwhile(where: str) -> None:
    done = said(
        f"""
interrupt._AGAIN_S = 30  # it comes too late
try:
  with interrupt.listening(), interrupt.promptly():
    {LOST[where]}
  print("forgotten")
except interrupt.Interrupted as stop:
  print(stop.name, sys.unraisablehook is sys.__unraisablehook__)
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM True\n", "")


def test_elsewhere_it_is_noted_and_other_mistakes_are_told() -> None:
    done = said(
        """
class Wrong:
    def __del__(self):
        raise ValueError("of a destructor")
with interrupt.listening():
    told()
    print(interrupt.noted())
with interrupt.listening(), interrupt.promptly():
    Wrong()
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""
    )
    assert (done.returncode, done.stdout) == (0, f"{int(signal.SIGTERM)}\nTrue\n")
    assert "ValueError: of a destructor" in done.stderr and os.linesep in done.stderr
