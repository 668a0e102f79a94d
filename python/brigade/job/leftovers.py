"""What a `brigade run` that was killed outright has left, and how the next one knows.

On the nodes: staged folders, which name their job, HOST-PID. `brigade-stage` removes those of dead
jobs; which jobs of this host are alive only this host can say. In the cache: a trial's records.
"""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator


def known() -> list[str]:
    """What `brigade-stage` should know of this host's jobs, as words of its command line."""
    live = list(jobs_of_this_host())
    return ["--launcher", os.uname().nodename, *(["--live", ",".join(live)] if live else [])]


def jobs_of_this_host() -> Iterator[str]:
    """The jobs of this user's `brigade run` processes that are alive on this host."""
    host = os.uname().nodename
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            if os.stat(f"/proc/{name}").st_uid != os.geteuid():
                continue
            with open(f"/proc/{name}/cmdline", "rb") as line:
                words = line.read().split(b"\0")
        except OSError:
            continue  # it has ended since
        if b"run" in words and any(word.rpartition(b"/")[2] == b"brigade" for word in words):
            yield f"{host}-{name}"


def remove_trials(image: str) -> None:
    """Remove the folders of trials for `image` that this host has begun and cannot end."""
    start, own = f"{image}.trial-{os.uname().nodename}-", str(os.getpid())
    for folder in glob.glob(glob.escape(start) + "*"):
        pid = folder[len(start) :]
        if pid == own or (pid.isdigit() and not os.path.exists(f"/proc/{pid}")):
            shutil.rmtree(folder, ignore_errors=True)
