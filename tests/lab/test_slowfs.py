"""The slow file system takes its time, and is otherwise the folder behind it."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from brigade.lab import Lab, namespaces, nodes

SERVICE_S = 0.002  # of the fixture `slow`


def python(lab: Lab, node: str, code: str, *arguments: str, **options) -> str:
    """What a Python program prints that runs on a node, in the shared folder."""
    argv = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    done = lab.exec(node, argv, cwd=lab.shared, stdout=-1, stderr=-1, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


STATS = """
    import os, sys, time
    time.sleep(max(0, float(sys.argv[1]) - time.monotonic()))
    for i in range(100):
        os.path.exists(f"absent{i}")
    print(time.monotonic())
"""


def test_requests_of_all_nodes_wait_in_one_queue(slow):
    start = time.monotonic() + 0.5
    argv = [sys.executable, "-c", textwrap.dedent(STATS), str(start)]
    clients = [
        slow.popen(node, argv, cwd=slow.shared, stdout=-1) for node in slow.nodes for _ in "ab"
    ]
    ends = [float(client.communicate()[0]) for client in clients]
    assert max(ends) - start >= 4 * 100 * SERVICE_S


def pins(lab: Lab) -> list[Path]:
    return [lab.plan.pins(node) for node in lab.nodes]


def processor_s(lab: Lab) -> float:
    """Processor seconds that the lab's clients have used so far."""
    ticks = 0
    for pid in namespaces.processes(pins(lab)):
        if namespaces.command_name(pid) == "brigade-slowfs":
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def allows_going_first() -> bool:
    def go_first() -> None:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))

    try:
        return subprocess.run(["true"], preexec_fn=go_first).returncode == 0
    except subprocess.SubprocessError:
        return False


def test_its_processes_go_before_all_ordinary_ones(slow):
    if not allows_going_first():
        pytest.skip("this machine allows no processes that go first")
    ours = {pid: namespaces.command_name(pid) for pid in namespaces.processes(pins(slow))}
    clients = [pid for pid, name in ours.items() if name == "brigade-slowfs"]
    assert len(clients) == len(slow.nodes)
    assert {os.sched_getscheduler(pid) for pid in clients} == {os.SCHED_RR}


def test_waiting_costs_no_processor_time(slow):
    before = processor_s(slow)
    python(slow, "n0", "import os; [os.path.exists(f'x{i}') for i in range(500)]")
    assert processor_s(slow) - before < 0.5 * 500 * SERVICE_S


def test_caches_can_be_dropped_again_after_an_end_half_way(slow):
    nodes.run_in(slow.plan, "n1", ["umount", slow.shared], "umount")
    slow.drop_caches()
    assert slow.faults() == []
    for node in slow.nodes:
        slow.exec(node, ["mountpoint", "-q", slow.shared], cwd="/", check=True)
        slow.exec(node, ["umount", slow.shared], cwd="/", check=True)
        assert slow.exec(node, ["mountpoint", "-q", slow.shared], cwd="/").returncode
    slow.drop_caches()


def test_files_can_be_opened_with_o_direct(slow):
    said = python(
        slow,
        "n0",
        """
        import mmap, os
        block = mmap.mmap(-1, 8192)
        block[:] = b"ab" * 4096
        for flags in (os.O_CREAT | os.O_EXCL, os.O_TRUNC):
            file = os.open("direct", os.O_RDWR | os.O_DIRECT | flags, 0o600)
            print(os.pwritev(file, [block], 4096))
            again = mmap.mmap(-1, 8192)
            print(os.preadv(file, [again], 4096), again[:] == block[:], os.fstat(file).st_size)
            os.close(file)
        """,
    )
    assert said == "8192\n8192 True 12288\n8192\n8192 True 12288"


def test_files_behave_as_on_the_folder_behind(slow):
    said = python(
        slow,
        "n0",
        """
        import mmap, os, stat
        os.mkdir("d")
        with open("d/f", "wb") as f:
            f.write(b"0123456789")
        with open("d/f", "ab") as f:
            f.write(b"ab")
        with open("d/f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
            m[2:4] = b"XY"
            m.flush()
        assert open("d/f", "rb").read() == b"01XY456789ab"
        os.truncate("d/f", 5)
        os.chmod("d/f", 0o640)
        os.utime("d/f", ns=(1_000_000_001, 2_000_000_002))
        os.setxattr("d/f", "user.k", b"v")
        assert os.getxattr("d/f", "user.k") == b"v" and os.listxattr("d/f") == ["user.k"]
        os.symlink("f", "d/l")
        os.utime("d/l", ns=(1, 2), follow_symlinks=False)
        os.link("d/f", "d/h")
        found = os.stat("d/l")
        assert (found.st_size, found.st_nlink, found.st_mtime_ns) == (5, 2, 2_000_000_002)
        assert stat.filemode(found.st_mode) == "-rw-r-----"
        os.rename("d/h", "d/g")
        assert sorted(os.listdir("d")) == ["f", "g", "l"] and os.readlink("d/l") == "f"
        held = open("d/g", "rb")
        os.unlink("d/g")
        os.unlink("d/f")
        assert held.read() == b"01XY4" and not os.path.exists("d/l")
        for i in range(500):
            open(f"d/{i:0100d}", "w").close()
        assert len(os.listdir("d")) == 501
        assert os.statvfs(".").f_bavail > 0
        print("done")
        """,
    )
    assert said == "done"


def test_a_program_with_shared_libraries_runs_from_it(slow):
    copy = (
        'p=$(python3 -c "import sys; print(sys.base_prefix)");'
        ' cp "$(readlink -f "$(command -v python3)")" python; '
        "cp /usr/bin/env . && ./env ./python -c 'import sys; print(6 * 7)'"
    )
    done = slow.exec("n1", ["sh", "-c", copy], cwd=slow.shared, stdout=-1, stderr=-1, text=True)
    assert done.stdout == "42\n", done.stderr


def test_what_one_node_wrote_another_reads(slow):
    for text in ("one", "another"):
        python(slow, "n0", "import sys; open('w', 'w').write(sys.argv[1])", text)
        time.sleep(1.1)  # attributes are believed for a second
        assert python(slow, "n1", "print(open('w').read())") == text


def test_files_belong_to_whoever_made_them_and_modes_hold(slow):
    make = (
        "import os; os.umask(0o027); open('o', 'w').close(); os.mkdir('od'); os.symlink('o', 'ol')"
    )
    python(slow, "n0", make, user="nobody")
    for name in ("o", "od", "ol"):
        assert os.lstat(slow.host_path("n0", f"{slow.shared}/{name}")).st_uid == 65534
    assert os.stat(slow.host_path("n0", f"{slow.shared}/o")).st_mode & 0o777 == 0o640
    python(slow, "n0", "open('mine', 'w').close(); import os; os.chmod('mine', 0o600)")
    done = slow.exec("n1", ["cat", f"{slow.shared}/mine"], user="nobody", cwd="/", stderr=-1)
    assert b"Permission denied" in done.stderr
    done = slow.exec("n1", ["rm", "-f", f"{slow.shared}/mine"], user="nobody", cwd="/", stderr=-1)
    assert done.returncode != 0  # the root is sticky


HOLD = """
    import fcntl, sys, time
    f = open("lock", "a")
    getattr(fcntl, sys.argv[1])(f, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(float(sys.argv[2]))
"""
TRY = """
    import fcntl, sys
    f = open("lock", "a")
    try:
        getattr(fcntl, sys.argv[1])(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("free")
    except OSError:
        print("taken")
"""


def test_locks_hold_across_nodes_and_waiting_for_one_can_be_killed(slow):
    for kind in ("flock", "lockf"):
        hold = [sys.executable, "-c", textwrap.dedent(HOLD), kind, "30"]
        with slow.popen("n0", hold, cwd=slow.shared, stdout=-1) as holder:
            holder.stdout.readline()
            assert python(slow, "n1", TRY, kind) == "taken"
            with slow.popen("n1", hold, cwd=slow.shared, stdout=-1) as waiter:
                time.sleep(0.3)
                assert waiter.poll() is None
                waiter.kill()
                waiter.wait(timeout=5)
            holder.kill()
        assert python(slow, "n1", TRY, kind) == "free"


def test_a_process_does_not_lock_itself_out(slow):
    code = """
        import fcntl
        a, b = open("self", "a"), open("self", "a")
        fcntl.lockf(a, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(b, fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("fine")
    """
    assert python(slow, "n0", code) == "fine"
