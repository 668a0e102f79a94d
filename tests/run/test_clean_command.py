"""`brigade clean`: what a killed `brigade run` left goes, a running one keeps what it has."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from project import Site


def clean(site: Site, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "BRIGADE_NODE_DIR": str(site.nodes)}
    return subprocess.run(
        [sys.executable, "-m", "brigade", "clean", *words],
        env=environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def staged(site: Site) -> list[str]:
    return [path.name for path in site.nodes.glob("brigade-*/[0-9a-f]*")]


def wait_for_the_end_of(pid: str) -> None:
    """Or until it only waits for somebody to ask for its status."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            with open(f"/proc/{pid}/stat") as stat:
                if stat.read().rpartition(")")[2].split()[0] == "Z":
                    return
        except OSError:
            return
        time.sleep(0.01)


def test_a_killed_run_is_cleaned_up_and_a_live_one_is_not(made: Site) -> None:
    environment = {
        **os.environ,
        "BRIGADE_CACHE": str(made.base / "cache"),
        "BRIGADE_NODE_DIR": str(made.nodes),
    }
    waits = "print('started', flush=True); input()"
    command = [sys.executable, "-m", "brigade", "run", "-q", "--", str(made.python), "-c", waits]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as job:
        assert job.stdin and job.stdout and job.stdout.readline() == "started\n"
        live = json.loads(clean(made, "--idle", "0", "--json").stdout)["found"]
        assert [one["why"] for one in live] == ["its brigade run is alive"]
        job.send_signal(signal.SIGKILL)
        job.wait(timeout=20)
        orphan = json.loads(clean(made, "--idle", "0", "--json").stdout)["found"]
        assert [one["removed"] for one in orphan] == [False], "its rank is still there"
        assert orphan[0]["why"].startswith("process ")
        job.stdin.close()  # the rank ends
        job.stdout.read()
        wait_for_the_end_of(orphan[0]["why"].split()[1])
    assert len(staged(made)) == 1
    dry = clean(made, "--idle", "0", "--dry-run")
    assert "would be removed" in dry.stdout and len(staged(made)) == 1
    done = clean(made, "--idle", "0", "--", "mpiexec.mpich", "-n", "1")
    assert done.returncode == 0 and "MiB were given back" in done.stdout, done.stderr
    assert staged(made) == []
    assert clean(made).stdout == "nothing is left\n"


def test_a_place_that_is_not_safe_is_one_clear_error(site: Site) -> None:
    site.nodes.chmod(0o777)
    done = clean(site)
    assert done.returncode == 6 and "not sticky" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_word_that_is_no_launcher_cleans_nothing(site: Site) -> None:
    done = clean(site, "--", "srunn", "-N", "4")
    assert (done.returncode, done.stdout) == (2, "")
    assert "srunn is no launcher" in done.stderr and "for this node: brigade clean" in done.stderr
