#!/usr/bin/env python3
"""Everything compiles for aarch64, too, and the auditor links there with nothing beside it.

    other_processor.py COMPILER compile_commands.json

Each file of src/ is read as for this processor, by a cross compiler, and compiled where it comes
into programs; headers of libraries are this machine's. Nothing is run: how that was tried is in
docs/design/0009-fidelity-tests.md.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ALONE = ["-nostdlib", "-shared", "-Wl,-z,defs", "-Wl,-z,now", "-Wl,-Bsymbolic"]
INJECTED = ("brigade-audit", "brigade-preload", "brigade-rank")
# as src/view/CMakeLists.txt says where the compiler has it
AUDITOR = ["-mno-outline-atomics"]


def compiled(compiler: str, entry: dict[str, str], folder: Path) -> tuple[Path, str]:
    """The object, and what the compiler said if there is none."""
    words = shlex.split(entry["command"])[1:]
    at = words.index("-o")
    target = words[at + 1].partition("CMakeFiles/")[2].partition(".dir/")[0]
    made = folder / f"{target}-{abs(hash(words[at + 1]))}.o"
    words[at + 1] = str(made)
    more = ["-idirafter", "/usr/include", *(AUDITOR if target == "brigade-audit" else [])]
    more += [] if target in INJECTED else ["-fsyntax-only"]
    done = subprocess.run(
        [compiler, *words, *more], cwd=entry["directory"], capture_output=True, text=True
    )
    return made, done.stderr if done.returncode else ""


def main() -> int:
    compiler, commands = sys.argv[1:]
    known = {}
    for entry in json.loads(Path(commands).read_text()):
        words = entry["command"]
        injected = any(f"/{name}.dir/" in words for name in INJECTED)
        ours = Path(entry["file"]).is_relative_to(ROOT / "src") and "/test_" not in words
        if ours and " -mavx" not in words:
            known[words if injected else entry["file"]] = entry
    entries = list(known.values())
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(os.cpu_count()) as pool:
        folder = Path(name)
        done = list(pool.map(lambda entry: compiled(compiler, entry, folder), entries))
        wrong = [said for _, said in done if said]
        audit = [str(made) for made, _ in done if made.name.startswith("brigade-audit-")]
        if not wrong:
            link = [compiler, *ALONE, *audit, "-o", str(folder / "audit.so")]
            wrong += filter(None, [subprocess.run(link, capture_output=True, text=True).stderr])
    print(f"{len(entries)} files, {len(audit)} of the auditor")
    print("\n".join(wrong), end="")
    return 1 if wrong or len(audit) < 8 or len(entries) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
