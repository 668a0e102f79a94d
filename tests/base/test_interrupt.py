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


def test_also_after_another_place_inside() -> None:
    done = said(
        """
begin = time.monotonic()
try:
  with interrupt.listening(), interrupt.promptly():
    with interrupt.promptly():
        pass
    told()
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


@pytest.mark.parametrize("call", ["poll()", "wait()"])
def test_a_childs_lock_is_given_back(call: str) -> None:
    """It comes between taking the lock and the block that gives it back."""
    done = said(
        f"""
import subprocess
child = subprocess.Popen(["sleep", "30"])
class Lock:
    def __init__(self, real):
        self.real, self.release, self.locked = real, real.release, real.locked
        self.told = False
    def acquire(self, *how):
        taken = self.real.acquire(*how)
        if not self.told:
            self.told = True
            told()
        return taken
    def __enter__(self):
        return self.acquire()
    def __exit__(self, *how):
        self.release()
child._waitpid_lock = Lock(child._waitpid_lock)
begin = time.monotonic()
try:
  with interrupt.listening(), interrupt.promptly():
    child.{call}
    time.sleep(20)
except interrupt.Interrupted as stop:
  print(stop.name, time.monotonic() - begin < 10)
child.kill()
print(child.wait(timeout=10))
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM True\n-9\n", "")


def test_a_child_that_is_being_started_is_known() -> None:
    done = said(
        """
import subprocess
def tells():
    os.kill(os.getppid(), signal.SIGTERM)
    time.sleep(0.2)  # the parent waits for it
try:
  with interrupt.listening(), interrupt.promptly():
    child = subprocess.Popen(["sleep", "30"], preexec_fn=tells)
    time.sleep(20)
except interrupt.Interrupted as stop:
  print(stop.name, child.poll())
child.kill()
print(child.wait(timeout=10))
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "SIGTERM None\n-9\n", "")
