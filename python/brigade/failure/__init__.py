"""Errors that help: why a job's start failed, and what would mend it.

`after` is asked once a job has ended other than with 0; `tell` prints what it found. A rule looks
at files and at what was seen, and speaks only if it is certain; nothing of the user's is run, and
the program's streams are its own. docs/design/0013-errors-that-help.md
"""

from brigade.failure.diagnosis import Diagnosis, tell
from brigade.failure.evidence import Evidence, Suspect
from brigade.failure.rules import after, diagnose

__all__ = ["Diagnosis", "Evidence", "Suspect", "after", "diagnose", "tell"]
