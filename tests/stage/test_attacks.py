"""Two users on one node. Whatever one prepares in a folder that all may write to, the other is
never made to load it, to write through it, or to remove something by it."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest

from brigade.launch import guarded
from brigade.paths import native

from .conftest import Bench

VICTIM, ATTACKER = 61001, 61002


@dataclass
class Node:
    """A node's memory, sticky and open to all, and a private folder of each user."""

    top: Path
    bench: Bench

    @property
    def shm(self) -> Path:
        return self.top / "shm"

    def name(self, user: int = VICTIM) -> Path:
        return self.shm / f"brigade-{user}"

    def own(self, user: int) -> Path:
        return self.top / str(user)

    def run(self, user: int, *words: str | Path, **options: Any) -> subprocess.CompletedProcess:
        return subprocess.run(
            [str(word) for word in words], user=user, group=user, extra_groups=[], cwd="/",
            capture_output=True, text=True, timeout=60, **options,
        )  # fmt: skip

    def python(self, user: int, program: str, *arguments: str | Path) -> str:
        """What a program of `user`'s prints."""
        done = self.run(user, sys.executable, "-c", program, *arguments)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def put(self, user: int = VICTIM, base: Path | None = None, job: str = "job", **options: Any):
        return self.run(
            user, native("brigade-stage"), "put", "--image", self.bench.image, "--job", job,
            "--base", base or self.shm, "--mpi", "none", **options,
        )  # fmt: skip

    def drop(self, user: int = VICTIM, job: str = "job") -> subprocess.CompletedProcess:
        return self.run(
            user, native("brigade-stage"), "drop", "--image-id", self.bench.id, "--job", job,
            "--base", self.shm,
        )  # fmt: skip

    def staged(self, user: int = VICTIM) -> Path:
        return self.name(user) / self.bench.id


@pytest.fixture
def node(bench: Bench, as_root: None) -> Iterator[Node]:
    top = bench.work / "node"
    top.mkdir()
    top.chmod(0o755)
    one = Node(top, bench)
    one.shm.mkdir()
    one.shm.chmod(0o1777)
    for user in (VICTIM, ATTACKER):
        one.own(user).mkdir()
        os.chown(one.own(user), user, user)
        one.own(user).chmod(0o700)
    yield one


def made_by_another(node: Node) -> None:
    node.python(ATTACKER, "import os, sys; os.mkdir(sys.argv[1])", node.name())
    node.run(ATTACKER, "chmod", "777", node.name())


def link_to_the_attackers_folder(node: Node) -> None:
    node.own(ATTACKER).chmod(0o777)
    node.run(ATTACKER, "ln", "-s", node.own(ATTACKER), node.name())


def link_to_the_victims_own_folder(node: Node) -> None:
    node.run(ATTACKER, "ln", "-s", node.own(VICTIM), node.name())


def a_file(node: Node) -> None:
    node.run(ATTACKER, "touch", node.name())


def a_pipe(node: Node) -> None:
    node.run(ATTACKER, "mkfifo", "-m", "666", node.name())


def open_to_a_group(node: Node) -> None:
    node.run(VICTIM, "mkdir", "-m", "770", node.name())


def open_to_look_into(node: Node) -> None:
    node.run(VICTIM, "mkdir", "-m", "755", node.name())


def memory_without_the_sticky_bit(node: Node) -> None:
    node.shm.chmod(0o777)


def memory_of_another_user(node: Node) -> None:
    os.chown(node.shm, ATTACKER, ATTACKER)


def a_folder_above_that_others_may_write(node: Node) -> None:
    node.top.chmod(0o777)


def memory_behind_a_link_of_another_user(node: Node) -> None:
    node.shm.rename(node.top / "real")
    os.symlink("real", node.shm)
    os.lchown(node.shm, ATTACKER, ATTACKER)


def memory_behind_links_into_a_folder_of_another_user(node: Node) -> None:
    node.own(ATTACKER).chmod(0o755)
    node.shm.rename(node.own(ATTACKER) / "real")
    os.symlink(f"{node.own(VICTIM)}/../{ATTACKER}/real", node.shm)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (made_by_another, "belongs to another user"),
        (link_to_the_attackers_folder, "is not a directory"),
        (link_to_the_victims_own_folder, "is not a directory"),
        (a_file, "is not a directory"),
        (a_pipe, "is not a directory"),
        (open_to_a_group, "can be entered by others"),
        (open_to_look_into, "can be entered by others"),
        (memory_without_the_sticky_bit, "not sticky"),
        (memory_of_another_user, "belongs to another user"),
        (a_folder_above_that_others_may_write, "not sticky"),
        (memory_behind_a_link_of_another_user, "belongs to another user"),
        (memory_behind_links_into_a_folder_of_another_user, "belongs to another user"),
    ],
)
def test_a_place_that_is_not_safe_is_refused_and_left_as_it_was(
    node: Node, prepare: Callable[[Node], None], words: str
) -> None:
    prepare(node)
    before = everything_below(node)
    done = node.put()
    assert done.returncode == 3, done.stdout + done.stderr
    assert words in done.stdout and "BRIGADE_NODE_DIR" in done.stdout
    assert everything_below(node) == before
    node.drop()
    assert everything_below(node) == before


def everything_below(node: Node) -> list[tuple[str, int, int]]:
    return sorted(
        (str(path), path.lstat().st_mode, path.lstat().st_uid) for path in node.top.rglob("*")
    )


def test_a_link_of_roots_on_the_way_is_no_attack(node: Node) -> None:
    node.shm.rename(node.top / "real")
    os.symlink("real", node.shm)
    done = node.put()
    assert done.returncode == 0, done.stdout
    assert node.staged().is_dir()


def test_two_users_stage_one_image_each_for_himself(node: Node) -> None:
    for user in (VICTIM, ATTACKER):
        assert node.put(user).returncode == 0
    for user in (VICTIM, ATTACKER):
        paths = [node.name(user), *node.name(user).rglob("*")]
        assert {path.lstat().st_uid for path in paths} == {user}
        assert stat.S_IMODE(node.name(user).stat().st_mode) == 0o700
    assert node.drop(ATTACKER).returncode == 0
    assert not node.staged(ATTACKER).exists() and node.staged(VICTIM).is_dir()


TRY_EVERYTHING = """
import errno, os, sys
folder, image_id, own = sys.argv[1:]
inside = f"{folder}/{image_id}"
tries = {
    "rename": lambda: os.rename(folder, folder + ".mine"),
    "remove": lambda: os.rmdir(folder),
    "list": lambda: os.listdir(folder),
    "stat": lambda: os.stat(f"{inside}/index"),
    "open state": lambda: os.open(f"{inside}/jobs/job/state", os.O_RDWR),
    "plant": lambda: os.mkdir(f"{folder}/planted"),
    "link in": lambda: os.link("/etc/passwd", f"{folder}/lock2"),
    "link out": lambda: os.link(f"{inside}/index", folder + ".index"),
    "replace": lambda: os.rename(own, folder),
    "open it up": lambda: os.chmod(folder, 0o777),
    "lock": lambda: os.open(f"{folder}/lock", os.O_RDWR),
}
for name, one in tries.items():
    try:
        one()
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EPERM):
            continue
        print(name, error)
    else:
        print(name, "worked")
"""


def test_nobody_else_can_touch_a_staged_folder(node: Node) -> None:
    node.put()
    own = node.own(ATTACKER)
    assert node.python(ATTACKER, TRY_EVERYTHING, node.name(), node.bench.id, own) == ""
    assert node.put(job="second").returncode == 0


SWAP = """
import os, select, sys, time
folder, tries = sys.argv[1], 0
while not select.select([0], [], [], 0)[0]:  # until the victim has had enough, or is gone
    for name in (folder, folder + ".swap"):
        try:
            os.symlink("/tmp", name)
            print("made", name, flush=True) if name == folder else None
        except OSError:
            pass
        try:
            os.rename(folder + ".swap", folder)
            print("swapped", flush=True)
        except OSError:
            pass
    tries += 1
    time.sleep(0.001)
assert tries > 100
"""


def test_a_swap_while_the_folder_is_made_and_published_does_not_work(node: Node) -> None:
    """The attacker hammers on the name while the victim stages again and again."""
    assert node.put().returncode == 0
    attack = subprocess.Popen(
        [sys.executable, "-c", SWAP, str(node.name())], stdin=subprocess.PIPE,
        user=ATTACKER, group=ATTACKER, extra_groups=[], cwd="/", stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    start, rounds = time.monotonic(), 0
    while time.monotonic() - start < 2.5 or (rounds <= 5 and time.monotonic() - start < 30):
        node.drop()
        assert node.put().returncode == 0
        rounds += 1
    assert attack.communicate()[0] == "" and attack.returncode == 0
    assert rounds > 5
    assert not node.name().is_symlink() and node.name().stat().st_uid == VICTIM


def evil_stage(node: Node) -> Path:
    """What the attacker has staged for himself, with other bytes in it, open to everybody, under
    the victim's name: on a node where the victim has nothing, that name is free."""
    assert node.put(ATTACKER).returncode == 0
    tool = Path(f"{node.staged(ATTACKER)}/root{node.bench.tree}/bin/tool")
    tool.write_text("#!/bin/sh\necho owned\n")
    wrapper = node.staged(ATTACKER) / "root/.brigade/bin/brigade-rank"
    wrapper.parent.mkdir(parents=True)
    wrapper.write_text("#!/bin/sh\necho owned\n")
    wrapper.chmod(0o755)
    os.chown(wrapper, ATTACKER, ATTACKER)
    node.name(ATTACKER).rename(node.name())
    for path in [node.name(), *node.name().rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o777 if path.is_dir() else 0o644))
    return node.staged()


def test_a_wrapper_that_another_user_put_under_our_name_is_not_started(node: Node) -> None:
    wrapper = evil_stage(node) / "root/.brigade/bin/brigade-rank"
    command = [*guarded([str(wrapper), "--job", "job"]), "/bin/echo", "plain"]
    assert node.run(VICTIM, *command).stdout == "plain\n"
    assert node.run(ATTACKER, *command).stdout == "owned\n", "the wrapper itself works"


def test_a_link_to_our_own_file_in_place_of_the_folder_is_not_followed(node: Node) -> None:
    secret = node.own(VICTIM) / "x/root/.brigade/bin/brigade-rank"
    node.python(
        VICTIM,
        "import os, sys; p = sys.argv[1]; os.makedirs(os.path.dirname(p));"
        "open(p, 'w').write('#!/bin/sh\\necho ran\\n'); os.chmod(p, 0o700)",
        secret,
    )
    node.run(ATTACKER, "ln", "-s", node.own(VICTIM), node.name())
    command = guarded([f"{node.name()}/x/root/.brigade/bin/brigade-rank", "--job", "job"])
    assert node.run(VICTIM, *command, "/bin/echo", "plain").stdout == "plain\n"


def rank_of(node: Node, stage: Path) -> list[str]:
    """The real wrapper and libraries, inside a stage."""
    for place, name in (("bin", "brigade-rank"), ("lib", "libbrigade-audit.so"),
                        ("lib", "libbrigade-preload.so")):  # fmt: skip
        folder = stage / "root/.brigade" / place
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).unlink(missing_ok=True)
        shutil.copy2(native(name), folder / name)
    for path in (stage / "root/.brigade").rglob("*"):
        path.chmod(0o755)
        os.chown(path, stage.stat().st_uid, -1)
    (stage / "root/.brigade").chmod(0o755)
    return [str(stage / "root/.brigade/bin/brigade-rank"), "--job", "job", "--view", "interpose"]


def test_a_rank_serves_nothing_from_the_stage_of_another_user(node: Node) -> None:
    tool = node.bench.tree / "bin/tool"
    stage = evil_stage(node)
    rank = rank_of(node, stage)
    show = ("--", "/bin/cat", tool)
    assert "owned" in node.run(ATTACKER, *rank, *show).stdout, "the attack is a real one"
    (stage / "jobs/job/state").chmod(0o666)
    assert "hello" in node.run(VICTIM, *rank, *show).stdout


def test_variables_that_point_to_another_users_stage_are_not_believed(node: Node) -> None:
    tool = node.bench.tree / "bin/tool"
    stage = evil_stage(node)
    rank_of(node, stage)
    library = native("libbrigade-preload.so")
    variables = {
        "PATH": os.environ["PATH"],
        "LD_PRELOAD": str(library),
        "BRIGADE_STAGE": str(stage),
        "BRIGADE_STATE": f"{stage}/jobs/job/state",
        "BRIGADE_SLOT": "0",
        "BRIGADE_VIEW": "interpose",
    }
    show = ("/bin/cat", tool)
    os.chmod(stage / "jobs/job/state", 0o600)
    assert "owned" in node.run(ATTACKER, *show, env=variables).stdout, "the attack is a real one"
    os.chmod(stage / "jobs/job/state", 0o666)
    assert "hello" in node.run(VICTIM, *show, env=variables).stdout


@pytest.mark.parametrize("mode", [0o600, 0o622])
def test_a_state_file_of_another_user_or_open_to_others_is_not_used(node: Node, mode: int) -> None:
    tool = node.bench.tree / "bin/tool"
    assert node.put().returncode == 0
    rank = rank_of(node, node.staged())
    state = node.staged() / "jobs/job/state"
    show = ("--", "/bin/sh", "-c", 'echo "${BRIGADE_STAGE:-no stage}"; /bin/cat "$0"', tool)
    assert node.run(VICTIM, *rank, *show).stdout.startswith(str(node.staged()))
    state.chmod(mode)
    if mode == 0o600:
        os.chown(state, ATTACKER, -1)
    assert "no stage" in node.run(VICTIM, *rank, *show).stdout
