"""A trace becomes a profile: what is counted where."""

from __future__ import annotations

from collections import Counter

import pytest
from made_traces import PYTHON, STEP_NS, built, events, process, python, trace

from brigade.profile.build import prefixes
from brigade.profile.profile import SHARED, as_dict, from_dict
from brigade.profile.scripts import interprets, script_of


def test_every_call_of_a_trace_is_in_exactly_one_cell():
    profile = built(python(rank=0), python(rank=1, pid=200)).profile
    assert profile.total() == 2 * len(events(PYTHON))
    assert profile.total(failed=True) == 2 * sum(1 for e in events(PYTHON) if e.error)
    assert profile.total(kind="read") == 2 * 5
    assert sum(cell.bytes for cell in profile.cells if cell.kind == "read") == 2 * (
        832 + 600 + 80 + 900 + 4096
    )


def test_the_phases_of_a_python_program_follow_each_other():
    story = built(python()).ranks[0].program
    phases = [mark.phase for mark in story.marks]
    assert sorted(set(phases), key=phases.index) == ["ld.so", "interpreter", "imports", "user"]
    first = {phase: story.process.events[phases.index(phase)].path for phase in set(phases)}
    assert first["interpreter"] == "/mnt/soft/py/bin/pyvenv.cfg"
    assert first["imports"] == "/scratch/run/app.py"
    assert first["user"] == "/scratch/run/input.dat"


def test_a_script_that_was_called_with_a_dot_is_the_script():
    dotted = PYTHON.replace("/scratch/run/app.py", "/scratch/run/./app.py")
    plain, other = (built(python(text, argv=["python3", "./app.py"])) for text in (PYTHON, dotted))
    assert [c.calls for c in other.profile.cells] == [c.calls for c in plain.profile.cells]
    assert [node.name for node in other.profile.tree] == [node.name for node in plain.profile.tree]


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("python3 app.py x", "/scratch/run/app.py"),
        ("python3 -W ignore -X faulthandler app.py", "/scratch/run/app.py"),
        ("python3.11 -Wignore -u -- /a/b.py", "/a/b.py"),
        ("python3 -uc print() x", ""),
        ("python3 -Im json.tool x", ""),
        ("bash -o pipefail x.sh", "/scratch/run/x.sh"),
        ("sh -ec a b", ""),
        ("perl -w x.pl", "/scratch/run/x.pl"),
        ("perl -we print(1) y", ""),
        ("ruby -W x.rb", "/scratch/run/x.rb"),
        ("pvpython -v x.py", "/scratch/run/x.py"),
        ("python - x", ""),
        ("python3.13t x.py", "/scratch/run/x.py"),
        ("bash -s arg", ""),
        ("sh -es arg", ""),
        ("perl -MTime::HiRes a.pl", "/scratch/run/a.pl"),
        ("perl -I lib -Mstrict -lw a.pl e", "/scratch/run/a.pl"),
        ("perl -n -e s/a/b/ f", ""),
        ("perl -w -e print(1)", ""),
        ("perl5.36.0 -lane print f", ""),
        ("perl -F: -i.bale a.pl", "/scratch/run/a.pl"),
        ("ruby -rdate a.rb", "/scratch/run/a.rb"),
        ("ruby -r date -I lib a.rb", "/scratch/run/a.rb"),
        ("ruby -ne puts f", ""),
        ("julia -t 4 a.jl", "/scratch/run/a.jl"),
        ("julia -t4 -O2 --threads 4 --project=e a.jl", "/scratch/run/a.jl"),
        ("julia --eval print f", ""),
        ("node -r esm a.js", "/scratch/run/a.js"),
        ("node --import x --trace-warnings a.js", "/scratch/run/a.js"),
        ("node -pe 1 f", ""),
        ("R -f a.R", "/scratch/run/a.R"),
        ("R --no-save --file=a.R", "/scratch/run/a.R"),
        ("R --vanilla x", ""),
        ("Rscript --vanilla a.R", "/scratch/run/a.R"),
        ("Rscript -e 1 f", ""),
        ("lua -l m -e x=1 a.lua", "/scratch/run/a.lua"),
        ("lua5.4 -", ""),
        ("php -d a=b -f a.php x", "/scratch/run/a.php"),
        ("guile -e main -s a.scm", "/scratch/run/a.scm"),
        ("octave --path p a.m", "/scratch/run/a.m"),
        ("tclsh8.6 -- a.tcl", "/scratch/run/a.tcl"),
    ],
)
def test_a_script_is_what_an_interpreter_runs_and_no_value_of_its_options(words, script):
    argv = words.split()
    assert script_of(process("", exe=f"/usr/bin/{argv[0]}", argv=argv)) == script


@pytest.mark.parametrize(
    ("words", "script"),
    [
        ("sh run.sh", "/scratch/run/run.sh"),
        ("-ash -e run.sh", "/scratch/run/run.sh"),
        ("busybox sh run.sh", "/scratch/run/run.sh"),
        ("/bin/busybox ash -c run.sh", ""),
        ("sh", ""),
        ("busybox cat run.sh", ""),
        ("cat run.sh", ""),
    ],
)
def test_a_shell_in_a_box_is_told_by_what_it_was_called(words, script):
    assert script_of(process("", exe="/bin/busybox", argv=words.split())) == script


def test_what_interprets_is_told_by_its_name():
    for name in ("python3.13t", "python3.12d", "pypy3.10", "perl5.36.0", "R", "bash", "busybox"):
        assert interprets(f"/usr/bin/{name}"), name
    for name in ("tar", "pythonic", "Ruby", ""):
        assert not interprets(f"/usr/bin/{name}"), name


def test_a_folder_that_a_program_is_given_something_in_is_not_its_own():
    tar = process("", exe="/usr/bin/tar", argv=["tar", "/mnt/soft/data/x"])
    assert prefixes(trace(tar)) == []
    assert prefixes(trace(process("", exe="/bin/sh", argv=["sh", "/mnt/soft/a/x"]))) == [
        "/mnt/soft/a"
    ]


def test_the_entry_point_that_was_measured_ends_ld_so():
    assert built(python(entry_ns=2 * STEP_NS + 1)).profile.total(before_main=True) == 3
    inferred = built(python()).profile
    assert inferred.total(before_main=True) == 4
    assert any("inferred" in sentence for sentence in inferred.seen)


def test_without_an_entry_point_nothing_says_that_it_was_inferred_if_it_was_not():
    assert not any("inferred" in s for s in built(python(entry_ns=5)).profile.seen)


def test_a_module_imported_late_is_still_an_import():
    late = PYTHON + (
        "stat 0 /mnt/soft/py/lib/python3.11\nstat 0 /mnt/soft/py/lib/python3.11/late.py\n"
        "open 3 /mnt/soft/py/lib/python3.11/__pycache__/late.cpython-311.pyc\n"
        "open 3 /scratch/run/more.dat\n"
    )
    story = built(python(late)).ranks[0].program
    assert [mark.phase for mark in story.marks[-4:]] == ["imports"] * 3 + ["user"]


def test_mpi_begins_with_its_runtime_and_ends_before_the_user():
    text = """
exec 0 /mnt/soft/app/bin/app
open 3 /etc/ld.so.cache
open 3 /mnt/soft/lib/libmpi.so.40
fread 832 /mnt/soft/lib/libmpi.so.40
open 3 /mnt/soft/etc/openmpi-mca-params.conf
open 3 /mnt/soft/lib/openmpi
flist 400 /mnt/soft/lib/openmpi
open 3 /sys/devices/system/cpu/online
open 3 /dev/shm/vader_segment.n0.1
open 3 /scratch/run/input.nml
"""
    profile = built(process(text, entry_ns=int(3.5 * STEP_NS))).profile
    assert (profile.total(phase="mpi"), profile.total(phase="user")) == (5, 1)
    begin, end = profile.ranks[0].mpi_s
    assert begin == 4e-3 and 8e-3 < end < 9e-3


def test_a_static_program_never_was_in_ld_so():
    profile = built(process("exec 0 /mnt/soft/app/bin/app\nopen 3 /scratch/run/x\n")).profile
    assert profile.total(phase="ld.so") == 0
    assert profile.ranks[0].main_s is None


def test_mounts_are_shared_local_memory_or_the_kernels():
    text = "\n".join(
        f"open 3 {path}"
        for path in ("/mnt/soft/a", "/scratch/b", "/etc/c", "/proc/d", "/dev/shm/e", "pipe:[7]")
    )
    profile = built(process(text)).profile
    assert {m.point: m.kind for m in profile.mounts} == {
        "/mnt/soft": "shared", "/scratch": "shared", "/": "local", "/proc": "kernel",
        "/dev/shm": "memory", "": "kernel",
    }  # fmt: skip
    assert profile.total(place=SHARED) == 2
    assert not any("counts as" in sentence for sentence in profile.seen)


def test_a_link_that_the_trace_has_read_leads_to_its_mount():
    text = "link 9 /nowhere/soft /mnt/soft\nopen 3 /nowhere/soft/lib/x\n"
    assert built(process(text)).profile.total(mount="/mnt/soft") >= 1


def test_a_call_about_a_link_lies_where_the_link_does(tmp_path):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    (tmp_path / "here/link").symlink_to("../there/file")
    (tmp_path / "there/file").symlink_to("last")
    (tmp_path / "there/last").touch()
    link = f"{tmp_path}/here/link"
    traced = process(
        f"link 4 {link} ../there/file\nlstat 0 {link}\nstat 0 {link}\nopen 3 {link}\n"
        f"unlink 0 {link}\nlink 9 /proc/self/exe {tmp_path}/there/last\nopen 3 /proc/self/exe\n"
    )
    cover = [f"{tmp_path}/here", f"{tmp_path}/there"]
    profile = built(traced, cover=cover).profile
    assert [profile.total(mount=mount) for mount in (*cover, "/proc")] == [3, 2, 2]
    ways = [event._replace(flags=flag) for event in traced.events[2:4] for flag in (0x100, 1 << 17)]
    assert [event.follows for event in ways] == [False, True, True, False]


LOCAL = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"


def test_without_a_shared_mount_the_programs_folder_stands_in_and_the_profile_says_so():
    profile = built(process("open 3 /mnt/soft/app/lib/x\nopen 3 /etc/y\n"), mounts=LOCAL).profile
    assert profile.total(place=SHARED) == 1
    assert any("/mnt/soft/app" in s and "counts as" in s for s in profile.seen)


def test_a_folder_to_cover_counts_as_shared(tmp_path):
    text = f"open 3 {tmp_path}/x\nopen 3 /mnt/soft/app/y\n"
    profile = built(process(text), mounts=LOCAL, cover=[str(tmp_path)]).profile
    assert profile.total(place=SHARED) == profile.total(mount=str(tmp_path)) == 1


def test_calls_below_mounted_software_are_memorys_and_the_profile_says_so():
    profile = built(process("open 3 /mnt/soft/a\nopen 3 /scratch/b\n"), viewed=True).profile
    assert profile.total(place="memory") == 2 and profile.total(place=SHARED) == 0
    assert any("namespace view" in sentence for sentence in profile.lost)


def test_wrappers_that_become_the_program_are_the_launch():
    sh = process("stat 0 /bin/x\n", exe="/bin/sh", rank=0)
    app = process("open 3 /scratch/x\n", start_ns=5 * STEP_NS, rank=0)
    profile = built(sh, app).profile
    assert profile.total(phase="launch") == 1
    assert profile.ranks[0].program == app.exe
    assert profile.ranks[0].processes == 1


def test_a_shell_that_stays_is_a_wrapper_of_what_it_starts():
    sh = process("stat 0 /bin/x\nstat 0 /bin/y\n", exe="/bin/bash", rank=3, end_ns=9 * STEP_NS)
    app = process("open 3 /scratch/x\n", pid=101, parent=100, start_ns=5 * STEP_NS)
    profile = built(sh, app).profile
    assert profile.ranks[0].rank == 3
    assert profile.ranks[0].program == app.exe
    assert profile.total(rank=3, phase="launch") == 2


def test_a_process_that_the_program_starts_is_in_the_phase_of_its_start():
    alone = built(python()).profile.total(phase="imports")
    start = {"start_ns": 27 * STEP_NS, "pid": 300, "parent": 100, "exe": "/bin/uname"}
    profile = built(python(), process("open 3 /scratch/c\nopen 3 /scratch/d\n", **start)).profile
    assert profile.total(phase="imports") == alone + 2


def test_a_process_outside_all_ranks_is_counted_as_rank_minus_one():
    launcher = process("open 3 /scratch/hosts\n", pid=50, exe="/usr/bin/mpirun")
    app = process("open 3 /scratch/x\n", rank=0, parent=50)
    profile = built(launcher, app).profile
    assert profile.total(rank=-1) == 1 and profile.total(rank=0) == 1
    assert [rank.rank for rank in profile.ranks] == [0]


def test_what_all_ranks_ask_alike_is_counted_with_the_same_answer_only():
    one = "open 3 /mnt/soft/lib/a\nopen 3 /mnt/soft/lib/b\nstat 0 /etc/local\n"
    two = "open 3 /mnt/soft/lib/a\nopen ENOENT /mnt/soft/lib/b\nopen 3 /scratch/rank1\n"
    found = built(process(one, rank=0), process(two, rank=1, pid=200)).profile.identical
    assert (found.calls, found.alike, found.paths) == (5, 2, 1)
    assert found.only_some == {"/mnt/soft/lib/b": 2, "/scratch/rank1": 1}
    assert built(process(one, rank=0)).profile.identical is None


def test_the_files_that_are_loaded_are_not_the_users_input():
    text = PYTHON + "open 3 /mnt/soft/site/late.bin\nfmap 9000 /mnt/soft/site/late.bin\n"
    files = built(python(text)).profile.files
    assert "/mnt/soft/py/lib/python3.11/json.py" in files and "/scratch/run/app.py" in files
    assert not {"/scratch/run/input.dat", "/mnt/soft/site/late.bin"} & set(files)


def test_the_timeline_has_every_call_on_a_shared_mount():
    profile = built(python()).profile
    kinds = Counter()
    for kind, steps in profile.timelines[0].kinds.items():
        kinds[kind] = sum(steps)
    assert sum(kinds.values()) == profile.total(place=SHARED)
    assert kinds["list"] == profile.total(place=SHARED, kind="list") == 2


def test_a_profile_is_the_same_after_json():
    profile = built(python(rank=0), python(rank=1, pid=200)).profile
    assert from_dict(as_dict(profile)) == profile
