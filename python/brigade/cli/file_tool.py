"""Asking brigade-file, which does the work of `brigade file` on bytes, checksums and parts."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from brigade import interrupt
from brigade.errors import BrigadeIOError
from brigade.job.progress import Progress
from brigade.paths import native


def ask(verb: str, *words: str, quiet: bool = True) -> dict[str, Any]:
    """The outcome of `brigade-file VERB WORDS`; unless `quiet`, with a line of progress.

    Raises BrigadeIOError with the tool's own words. A signal that asks this process to end ends the
    tool, which takes back what it has begun, and then the command.
    """
    command = [str(native("brigade-file")), verb, *words]
    outcome: dict[str, Any] = {}
    line = Progress(quiet)
    with interrupt.listening(), subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        try:
            with interrupt.promptly():
                for text in tool.stdout:
                    outcome = json.loads(text)
                    if "done" in outcome:
                        line.show(verb, outcome["done"], outcome["total"])
        except interrupt.Interrupted as stop:
            tool.terminate()
            tool.communicate()
            sys.exit(128 + stop.signum)
        finally:
            line.close()
    if "error" in outcome:
        raise BrigadeIOError(outcome["errno"], outcome["error"], outcome["path"] or words[0])
    if tool.returncode:
        status = f"brigade-file {verb} ended with status {tool.returncode}"
        raise BrigadeIOError(0, status, words[0])
    return outcome
