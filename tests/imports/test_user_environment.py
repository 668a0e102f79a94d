"""os.environ is the user's own: what Brigade put in is gone, what the user set is there."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from staged import Staged

SHOW = (
    "import os; print({k: v for k, v in os.environ.items()"
    " if k.startswith(('BRIGADE', 'LD_', 'GLIBC', 'PYTHONP'))})"
)
TLS = "glibc.rtld.optional_static_tls=32768"


def shown(world: Staged, env: dict[str, str]) -> dict[str, str]:
    site = str(world.stage_folder / "root/.brigade/python")
    env = {key: value.replace("SITE", site) for key, value in env.items()}
    seen: dict[str, str] = ast.literal_eval(world.plain(["-c", SHOW], env).stdout)
    del seen["BRIGADE_STRICT"]
    return seen


@pytest.fixture
def audit(preload: str) -> str:
    """A library that ld.so refuses as an auditor, under the auditor's name."""
    path = Path(preload).with_name("libbrigade-audit.so")
    path.write_bytes(Path(preload).read_bytes())
    return str(path)


CASES = {
    "all_were_unset": (
        {"PYTHONPATH": "SITE", "LD_AUDIT": "AUDIT", "LD_PRELOAD": "PRELOAD", "GLIBC_TUNABLES": TLS},
        {},
    ),
    "all_were_set": (
        {
            "PYTHONPATH": "SITE:/x",
            "BRIGADE_SAVED_PYTHONPATH": "/x",
            "LD_AUDIT": "AUDIT:",
            "BRIGADE_SAVED_LD_AUDIT": "",
            "LD_PRELOAD": "PRELOAD",
            "BRIGADE_SAVED_LD_PRELOAD": "libm.so.6",
            "GLIBC_TUNABLES": TLS + ":glibc.malloc.arena_max=1",
            "BRIGADE_SAVED_GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        },
        {
            "PYTHONPATH": "/x",
            "LD_AUDIT": "",
            "LD_PRELOAD": "libm.so.6",
            "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        },
    ),
    "only_the_python_view": (
        {"PYTHONPATH": "SITE", "LD_PRELOAD": "libm.so.6", "GLIBC_TUNABLES": TLS},
        {"LD_PRELOAD": "libm.so.6", "GLIBC_TUNABLES": TLS},
    ),
    "the_user_s_own_tunables_sufficed": (
        {
            "PYTHONPATH": "SITE",
            "LD_AUDIT": "AUDIT",
            "LD_PRELOAD": "PRELOAD",
            "GLIBC_TUNABLES": "glibc.malloc.arena_max=1:" + TLS,
        },
        {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1:" + TLS},
    ),
    "brigade_s_settings_for_users_stay": (
        {"PYTHONPATH": "SITE", "BRIGADE_CACHE": "/c", "BRIGADE_SLOT": "3", "BRIGADE_JOB": "j"},
        {"BRIGADE_CACHE": "/c"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_environment_where(own_world: Staged, preload: str, audit: str, case: str) -> None:
    given, expected = CASES[case]
    given = {k: v.replace("AUDIT", audit).replace("PRELOAD", preload) for k, v in given.items()}
    assert shown(own_world, given) == expected
