"""`brigade doctor`: what it says is what `brigade run` then meets."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from auditors import TRACER
from click.testing import CliRunner
from libc_version import sound_under_auditors
from world_of_c import library

from brigade.cli.doctor import command
from brigade.doctor import probe, verdict
from brigade.paths import native

ABLE = {
    "host": "n0", "kernel": "6.1", "machine": "x86_64", "user": 1000, "user_namespaces": True,
    "ids": True, "all_ids": "Operation not permitted", "mounts": True, "overlay": True,
    "userxattr": True, "whiteouts": True, "opaque": True, "bind": True, "cma": True, "trace": True,
    "interpose": True, "binds_calls": True, "new_namespaces": True,
    "memory": {"bytes": 1 << 30, "free": 1 << 30, "exec": True, "writable": True},
}  # fmt: skip


def doctor(*words: str, front: list[str] | None = None, **variables: str):
    return subprocess.run(
        [*(front or []), sys.executable, "-m", "brigade", "doctor", *words],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=120,
    )


def views(node: dict) -> dict[str, str | None]:
    return {view.name: view.why for view in verdict.judge(node).views}


def test_a_node_that_allows_everything_gets_every_view_and_namespace_for_static_programs() -> None:
    told = verdict.judge(ABLE)
    assert told.ok and set(views(ABLE).values()) == {None}
    assert (told.auto, told.auto_static[0]) == (("interpose", "python"), "namespace")
    assert told.hints == ()
    assert "nobody" in " ".join(told.views[0].notes)


@pytest.mark.parametrize(
    ("key", "words", "hint"),
    [
        ("user_namespaces", "no user namespaces", "max_user_namespaces"),
        ("overlay", "no overlay mounts", "5.11"),
    ],
)
def test_what_is_refused_is_named_with_what_to_do(key: str, words: str, hint: str) -> None:
    node = {**ABLE, key: "Operation not permitted"}
    told = verdict.judge(node)
    why = views(node)["namespace"] or ""
    assert words in why and "Operation not permitted" in why
    assert told.auto_static == told.auto == ("interpose", "python") and told.ok
    assert hint in " ".join(told.hints) and words in told.why


def test_without_interpose_the_python_view_is_left() -> None:
    told = verdict.judge({**ABLE, "interpose": "ld.so does not load"})
    assert told.auto == ("python",) and told.ok and told.hints


def test_what_the_c_librarys_own_defects_do_is_said_with_the_view() -> None:
    assert verdict.judge(ABLE).views[1].notes == ()
    slow = verdict.judge({**ABLE, "binds_calls": "glibc bug 15533"})
    assert slow.ok and "LD_BIND_NOW" in slow.views[1].notes[0]
    assert "15533" in slow.views[1].notes[0]
    (note,) = verdict.judge({**ABLE, "new_namespaces": "glibc bug 28062"}).views[1].notes
    assert "dlmopen" in note and "28062" in note
    assert not verdict.judge({**ABLE, "interpose": "no", "binds_calls": None}).views[1].notes


@sound_under_auditors
def test_calls_that_stay_slow_are_found(tmp_path: Path) -> None:
    """Under an auditor that does trace calls they go through ld.so for ever on every system."""
    if platform.machine() != "x86_64":
        pytest.skip("the auditor is written for one machine")
    program = native("brigade-audited")
    assert subprocess.run([program]).returncode == 0
    tracer = library(tmp_path / "tracer.so", source=TRACER)
    assert subprocess.run([program], env={"LD_AUDIT": str(tracer)}).returncode == 1


@pytest.mark.parametrize(
    "memory",
    [
        {"error": "No such file or directory"},
        {**ABLE["memory"], "free": 1 << 20},
        {**ABLE["memory"], "exec": False},
        {**ABLE["memory"], "writable": False},
    ],
)
def test_a_node_without_memory_for_an_image_is_not_well(memory: dict) -> None:
    told = verdict.judge({**ABLE, "memory": memory})
    assert not told.ok and told.memory and "BRIGADE_NODE_DIR" in " ".join(told.hints)


def with_free(size: int) -> dict:
    return {**ABLE, "host": "n1", "memory": {**ABLE["memory"], "free": size}}


def test_nodes_are_alike_if_only_their_names_and_free_memory_differ() -> None:
    other = with_free(500 << 20)
    assert verdict.same(ABLE) == verdict.same(other)
    assert verdict.same(ABLE) != verdict.same({**other, "kernel": "4.18"})


def test_a_node_with_too_little_free_memory_is_not_like_one_with_enough() -> None:
    full, fuller = with_free(5 << 20), with_free(0)
    assert verdict.same(ABLE) != verdict.same(full) == verdict.same(fuller)


def test_one_full_node_among_others_is_told_with_status_1(monkeypatch: pytest.MonkeyPatch) -> None:
    full = {**with_free(0), "host": "n2"}
    for nodes in ([ABLE, full, with_free(5 << 20)], [full, ABLE]):
        monkeypatch.setattr(probe, "nodes", lambda words, nodes=nodes: (nodes, None))
        done = CliRunner().invoke(command, [])
        assert done.exit_code == 1 and "no: only 0" in done.stdout, done.stdout


def test_it_tries_each_thing_here_and_leaves_nothing() -> None:
    before = {path.name for path in Path("/tmp").glob("brigade-probe-*")}
    (node,), lost = probe.nodes([])
    assert lost is None
    assert set(ABLE) == set(node) and node["host"] == os.uname().nodename
    assert node["interpose"] is True
    assert len(json.dumps(node)) < 1000  # launchers cut longer lines
    assert {path.name for path in Path("/tmp").glob("brigade-probe-*")} <= before


def test_the_command_says_what_is_chosen_and_why(tmp_path: Path) -> None:
    done = doctor(BRIGADE_NODE_DIR=str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("namespace", "interpose,python", "for a static program", "node memory"):
        assert words in done.stdout
    told = json.loads(doctor("--json", BRIGADE_NODE_DIR=str(tmp_path)).stdout)
    assert told["ok"] and told["nodes"][0]["hosts"] == [os.uname().nodename]


def test_a_folder_that_is_not_there_is_said_with_status_1() -> None:
    done = doctor(BRIGADE_NODE_DIR="/no/such/folder")
    assert done.returncode == 1
    assert "/no/such/folder" in done.stdout and "No such file or directory" in done.stdout


def test_it_sees_that_user_namespaces_are_off(tmp_path: Path) -> None:
    limit = 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"'
    front = ["unshare", "--user", "--map-root-user", "/bin/sh", "-c", limit, "sh"]
    if subprocess.run([*front, "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces, to take them away")
    done = doctor(front=front, BRIGADE_NODE_DIR=str(tmp_path))
    assert done.returncode == 0
    assert "no: no user namespaces for this user (No space left on device)" in done.stdout
    assert "max_user_namespaces" in done.stdout


LAUNCHER = """#!/bin/sh
case $1 in --version) echo "mpirun (Open MPI) 4.1.4"; exit;; esac
while [ "${1##*/}" != brigade-rank ]; do shift; done
"$@"
echo "error: n1 is down" >&2
exit STATUS
"""


def own_namespace(script: str) -> list[str]:
    """What starts a program in a mount namespace of its own, after a script."""
    front = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-ec"]
    front += [f'{script}; exec "$@"', "sh"]
    if subprocess.run([*front, "true"], capture_output=True).returncode:
        pytest.skip("needs user namespaces, for mounts of its own")
    return front


def test_where_tmp_is_not_writable_things_are_tried_in_node_memory() -> None:
    read_only = own_namespace("mount --bind /tmp /tmp; mount -o remount,bind,ro /tmp")
    with TemporaryDirectory(dir="/dev/shm") as folder:
        done = doctor("--json", front=read_only, BRIGADE_NODE_DIR=folder)
        assert done.returncode == 0, done.stdout
        (node,) = json.loads(done.stdout)["nodes"]
        assert [view["why_not"] for view in node["views"].values()] == [None, None, None]
        assert os.listdir(folder) == []
    done = doctor("--json", front=read_only, BRIGADE_NODE_DIR="/tmp")
    views = json.loads(done.stdout)["nodes"][0]["views"]
    assert views["namespace"]["why_not"].startswith("it could not be tried")
    assert "in /tmp or in node memory" in views["interpose"]["why_not"]


SRUN = LAUNCHER.replace("#!/bin/sh", '#!/bin/sh\n[ "$SLURM_JOB_ID" = 77 ] || exit 9').replace(
    'echo "error: n1 is down" >&2\nexit STATUS\n', ""
)


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["mpirun"], 1, "some nodes may not have answered (status 1): error: n1 is down"),
        (["srun", "-N", "3"], 0, "only 1 of 3 nodes answered (status 0): error: n1 is down"),
    ],
)
def test_nodes_that_do_not_answer_are_said_with_status_1(
    words: list[str], status: int, said: str, tmp_path: Path
) -> None:
    program = tmp_path / words[0]
    program.write_text(LAUNCHER.replace("STATUS", str(status)))
    program.chmod(0o755)
    words = ["--", str(program), *words[1:]]
    for options in ([], ["--json"]):
        done = doctor(*options, *words, BRIGADE_NODE_DIR=str(tmp_path), SLURM_JOB_ID="1")
        assert done.returncode == 1 and said in done.stdout, done.stderr


SALLOC = """#!/bin/sh
while [ "$1" != /bin/sh ]; do shift; done
echo "salloc: Granted job allocation 77" >&2
SLURM_JOB_ID=77 "$@"
echo "given back" > "$0.log"
"""


def test_from_a_login_node_it_waits_for_an_allocation_and_gives_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An srun outside of one would be silent while its job waits, and be ended for that."""
    for name in [name for name in os.environ if name.startswith("SLURM")]:
        monkeypatch.delenv(name)
    for name, text in (("salloc", SALLOC), ("srun", SRUN)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = doctor(
        *("--", "srun", "-N", "1"),
        BRIGADE_NODE_DIR=str(tmp_path),
        PATH=f"{tmp_path}:{os.environ['PATH']}",
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "salloc.log").read_text() == "given back\n"


def test_a_launcher_that_is_not_there_ends_with_status_3() -> None:
    done = doctor("--", "mpirun-of-nowhere", "-n", "2")
    assert done.returncode == 3 and "mpirun-of-nowhere" in done.stderr


@pytest.mark.parametrize(
    "words", [("--", "srunn", "-N", "4"), ("--json", "out.json"), ("--", "aprun", "-n", "4")]
)
def test_a_word_that_is_no_launcher_is_not_taken_for_this_node(words: tuple[str, ...]) -> None:
    done = doctor(*words)
    assert (done.returncode, done.stdout) == (2, "")
    word = next(word for word in words if not word.startswith("-"))
    assert f"brigade: {word} is " in done.stderr and "launcher that Brigade" in done.stderr
