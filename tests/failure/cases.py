"""All cases, and the table of them: `python cases.py` writes it into the page that has it.

Each is made for real on the machine where that is run; what it shows of its paths is shortened.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import cases_command
import cases_launchers
import cases_libraries
import cases_limits
import cases_python
from failing import Case, fail

CASES: list[Case] = [
    case
    for part in (cases_launchers, cases_command, cases_python, cases_libraries, cases_limits)
    for case in part.CASES
]
#: Made in test_lab.py: (title, kind), and what is said there.
LAB = {
    ("a partition that is not there", "launcher-partition"): "Slurm has no partition labb",
    ("an MPI plugin that Slurm does not have", "launcher-plugin"): "Slurm has no MPI plugin …",
    (
        "a program that only one node has",
        "local-disk",
    ): "/tmp/solver lies on /tmp (tmpfs) of HOST alone, and the job's nodes do not have it",
}
PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/when-a-start-fails.md"
START = "| what is wrong | what is said | `kind` |\n|---|---|---|\n"


def rows(page: str) -> list[tuple[str, str]]:
    """(title, kind) of each row of the page's table."""
    return re.findall(r"^\| (.*?) \| .* \| `([\w-]+)` \|$", _table(page), re.MULTILINE)


def _table(page: str) -> str:
    return re.match(r"(\|.*\n)*", page.partition(START)[2])[0]


def row(case: Case) -> str:
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        try:
            said = fail(case, base).diagnoses[0].what
        finally:
            if os.path.ismount(base / "mnt"):
                os.system(f"umount {base}/mnt")
            for group in Path("/sys/fs/cgroup").glob(f"**/brigade-test-{os.getpid()}"):
                group.rmdir()
    said = said.replace(f"{base}/", "").replace(str(base), "FOLDER")
    said = said.replace(os.uname().nodename, "HOST").replace(sys.executable, "python")
    return f"| {case.title} | {said.replace('|', '/')} | `{case.kind}` |"


def main() -> None:
    page = PAGE.read_text()
    old = START + _table(page)
    assert all(not case.needs() for case in CASES)
    new = START + "".join(row(case) + "\n" for case in CASES)
    new += "".join(f"| {title} | {said} | `{kind}` |\n" for (title, kind), said in LAB.items())
    PAGE.write_text(page.replace(old, new))


if __name__ == "__main__":
    main()
