"""What the libraries export and need, read from the files themselves."""

from __future__ import annotations

import re
from pathlib import Path

from world import run

from brigade.paths import native

SOURCES = Path(__file__).resolve().parents[2] / "src" / "view"


def exported(name: str) -> set[str]:
    lines = run(["nm", "-D", "--defined-only", str(native(name))]).stdout.splitlines()
    return {line.split()[2] for line in lines}


def test_the_preloaded_library_exports_the_list_and_nothing_else() -> None:
    text = (SOURCES / "hooks.def").read_text()
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    listed = set(re.findall(r"BRG_HOOK\([^,]+,\s*(\w+),", text))
    listed |= set(re.findall(r"BRG_ALIAS\((\w+),", text))
    listed -= {"name"}
    assert exported("libbrigade-preload.so") == listed | {"brigade_handoff", "brigade_ready"}


def test_the_auditor_traces_no_call_and_binds_no_symbol() -> None:
    names = exported("libbrigade-audit.so")
    assert names == {"la_version", "la_objsearch", "la_objopen", "la_activity", "la_preinit"}


def test_the_auditor_needs_no_library_and_no_thread_storage() -> None:
    audit = str(native("libbrigade-audit.so"))
    assert run(["nm", "-D", "--undefined-only", audit]).stdout == ""
    assert "NEEDED" not in run(["readelf", "-dW", audit]).stdout
    assert " TLS " not in run(["readelf", "-lW", audit]).stdout


def test_the_preloaded_library_needs_only_the_libc() -> None:
    text = run(["readelf", "-dW", str(native("libbrigade-preload.so"))]).stdout
    needed = set(re.findall(r"NEEDED.*\[(.*)\]", text))
    assert needed <= {"libc.so.6", "libdl.so.2"}
