"""A file of `srun --multi-prog` is understood, and written, as Slurm reads it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from brigade.errors import UsageError
from brigade.launch import guarded, multiprog
from brigade.launch.srun import SrunLaunch

COUPLED = """# the coupled model
0-1   ./atmosphere --grid %t
2,4-5 python ocean.py 'deep sea' x\\ y \\
      --last
  # nothing
* ./idle %o%%
"""


@pytest.fixture
def coupled(tmp_path: Path) -> str:
    path = tmp_path / "coupled.conf"
    path.write_text(COUPLED)
    return str(path)


def test_lines_that_count_have_ranks_and_a_command():
    entries = multiprog.read(COUPLED)
    assert [entry.ranks for entry in entries] == ["0-1", "2,4-5", "*"]
    assert [entry.end for entry in entries] == [2, 6, 0]
    assert [entry.words() for entry in entries] == [
        ["./atmosphere", "--grid", "0"],
        ["python", "ocean.py", "deep sea", "x y", "", "--last"],
        ["./idle", "0"],
    ]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("a  b\tc ", ["a", "b", "c"]),
        ("a '' b", ["a", "", "b"]),
        ("a'b c'd", ["ab cd"]),
        ('"a b"', ['"a', 'b"']),
        ("a\\'b '%t' %t.%o", ["a'b", "%t", "7.3"]),
        ("a\\\nb c\\\n", ["ab", "c"]),
    ],
)
def test_words_of_a_command(command, words):
    assert multiprog.split(command, 7, 3) == words


@pytest.mark.parametrize("word", ["a", "", "a b", "it's", "'", "%t", "a\\b", "#x", '$("$@")'])
def test_a_quoted_word_is_read_as_itself(word):
    assert multiprog.split(f"x {multiprog.quoted(word)} y", 1, 1) == ["x", word, "y"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("0 a\n1\n", "line 2 "), ("a b", "line 1 "), ("# x\n\n", "no line"), ("0- a", "line 1 ")],
)
def test_what_slurm_refuses_is_refused_and_named(text, said):
    with pytest.raises(UsageError, match=said):
        multiprog.read(text)


def test_job_has_the_prefix_before_each_command(coupled, monkeypatch):
    launch = SrunLaunch(["srun", "-n", "8", "--multi-prog", coupled, "more"])
    prefix = guarded(["/w", "--job", "it's 100%"], {"LD_LIBRARY_PATH": "/no"})
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with launch.session():
        job = launch.job(prefix)
        assert job[:4] == ["srun", "-n", "8", "--multi-prog"] and job[5:] == ["more"]
        assert os.path.basename(job[4]) == "coupled.conf" and job[4] != coupled
        text = Path(job[4]).read_text()
        assert max(map(len, text.splitlines())) < 1000  # Slurm reads no longer ones than 16 KiB
        for entry, own in zip(multiprog.read(text), multiprog.read(COUPLED)):
            assert entry.ranks == own.ranks
            for rank in (0, 3):
                words = multiprog.split(own.command, rank, 1)
                assert multiprog.split(entry.command, rank, 1) == [*prefix, *words]
    assert not os.path.exists(os.path.dirname(job[4]))
    assert launch.job([]) == launch.words


def test_job_has_its_programs_and_ranks(coupled):
    launch = SrunLaunch(["srun", "--multi-prog", coupled, "more"])
    assert [words[0] for words in launch.programs] == ["./atmosphere", "python", "./idle"]
    assert launch.programs[2] == ["./idle", "0", "more"]
    assert launch.ranks == 6
    assert SrunLaunch(["srun", "-n", "8", "--multi-prog", coupled]).ranks == 8


def _trial(words: list[str], ranks: int) -> list[tuple[str, list[str]]]:
    launch = SrunLaunch(words)
    trial = launch.trial(ranks, ["W"])
    assert trial[trial.index("--nodes") + 1] == "1" and trial[-2] == "--multi-prog"
    entries = multiprog.read(Path(trial[-1]).read_text())
    assert trial[trial.index("--ntasks") + 1] == str(entries[-1].end)
    return [(entry.ranks, entry.words()) for entry in entries]


def test_trial_starts_each_program(coupled):
    assert _trial(["srun", "--multi-prog", coupled], 6) == [
        ("0-1", ["W", "./atmosphere", "--grid", "0"]),
        ("2-3", ["W", "python", "ocean.py", "deep sea", "x y", "", "--last"]),
        ("4-5", ["W", "./idle", "0"]),
    ]


def test_trial_of_many_commands_starts_each_program_once(tmp_path):
    path = tmp_path / "farm"
    path.write_text("".join(f"{i} python farm{i % 2}.py {i}\n" for i in range(40)))
    found = _trial(["srun", "--multi-prog", str(path)], 2)
    assert [words[2:] for _, words in found] == [["farm0.py", "0"], ["farm1.py", "1"]]
    path.write_text("".join(f"{i} ./farm{i}\n" for i in range(40)))
    assert len(_trial(["srun", "--multi-prog", str(path)], 2)) == 16


def test_components_of_a_step_have_the_prefix_each_and_one_trial():
    words = ["srun", "-N1", "-n2", "./a", "x y", ":", "-n", "3", "-c2", "./b"]
    launch = SrunLaunch(words)
    assert launch.ranks == 5 and launch.programs == [["./a", "x y"], ["./b"]]
    assert launch.job(["W"]) == [*words[:3], "W", *words[3:9], "W", "./b"]
    assert _trial(words, 2) == [("0-0", ["W", "./a", "x y"]), ("1-1", ["W", "./b"])]


def test_components_of_a_heterogeneous_job_are_staged_each(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_HET_SIZE", "3")
    for group, nodes in enumerate("248"):
        monkeypatch.setenv(f"SLURM_JOB_NUM_NODES_HET_GROUP_{group}", nodes)
    step = SrunLaunch(["srun", "--het-group=0,2", "-c4", "./a"]).per_node(["T"])
    middle = step.index(":")
    assert step[-1] == step[middle - 1] == "T" and "-c4" not in step
    assert [part for part in step if part.startswith("--het")] == ["--het-group=0", "--het-group=2"]
    assert step[step.index("--nodes") + 1] == "2" and step[step.index("--nodes", middle) + 1] == "8"
    two = SrunLaunch(["srun", "./a", ":", "./b"])
    assert [part for part in two.per_node(["T"]) if part.startswith("--het")][1] == "--het-group=1"


def test_command_that_slurm_would_cut_is_refused(tmp_path):
    path = tmp_path / "long"
    path.write_text("0 a " + "b " * 100)
    with pytest.raises(UsageError, match="101 words"):
        SrunLaunch(["srun", "--multi-prog", str(path)])
