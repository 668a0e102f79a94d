#!/usr/bin/env python3
"""Make `brigade run` fail in every way, at every step, on a lab's four nodes; measure how long it
takes until the job runs without an image or one error ends it; look for what is left in memory.

    python bench/faults.py --out out/faults
    python bench/faults.py --only node --only signal

Seconds count from the fault, or, where it strikes by itself, from the start of `brigade run` (an
upper bound). `left` names the nodes whose memory still holds something 5 s after that. Writes
OUT/faults.json.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from support.options import end_in_order
from support.samples import save

from brigade.lab import Lab, namespaces

LIMIT_S = 60.0
LEFT_S = 5.0
PATIENCE = "8"  # what is not set by a user
LOST = "n2"
WAIT = Path(f"/var/tmp/brigade-bench-faults-{os.getpid()}")  # nodes see it
APP = """\
import os, sys, time
import pkg.a, pkg.b
print("started", flush=True)
while os.path.exists(os.environ.get("BENCH_WAIT", "/nowhere")):
    time.sleep(0.05)
"""
LAUNCHERS = {
    "srun": ["srun", "--mpi=pmix", "-N4", "-n4"],
    "mpirun": ["mpirun", "-n", "4", "--map-by", "ppr:1:node"],
    "mpiexec": ["mpiexec.mpich", "-ppn", "1", "-n", "4"],
}


class Run:
    """A `brigade` command on the lab's first node; what it said, with the time of each line."""

    def __init__(self, bench: Bench, words: list[str], **env: str) -> None:
        own = {"BRIGADE_CACHE": f"{bench.lab.shared}/images", "BRIGADE_PATIENCE": PATIENCE}
        self.started = time.monotonic()
        self.process = bench.lab.popen(
            "n0", [sys.executable, "-m", "brigade", *words], cwd="/", env={**own, **env},
            stdout=PIPE, stderr=PIPE, text=True,
        )  # fmt: skip
        self.lines: list[tuple[float, str]] = []
        for stream in (self.process.stdout, self.process.stderr):
            threading.Thread(target=self._listen, args=(stream,), daemon=True).start()

    def _listen(self, stream: Any) -> None:
        for line in stream:
            self.lines.append((time.monotonic(), line.rstrip()))

    def said(self, words: str) -> float | None:
        """When a line with these words came first."""
        return next((at for at, line in list(self.lines) if words in line), None)

    def until(self, what: Callable[[], Any]) -> Any:
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            found = what()
            if found:
                return found
            time.sleep(0.02)
        self.process.kill()
        raise SystemExit(f"it did not come; {[line for _, line in self.lines]}")

    def ends(self) -> float:
        """When it has ended; after LIMIT_S it is made to."""
        try:
            self.process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
        return time.monotonic()

    def decides(self) -> float:
        """When the job is started without an image, or the command has ended."""
        self.until(
            lambda: (
                self.said("the job starts without an image")
                or self.said("the job ran without an image")
                or self.process.poll() is not None
            )
        )
        return self.said("the job starts without an image") or time.monotonic()


@dataclass
class Bench:
    lab: Lab
    samples: list[dict[str, Any]] = field(default_factory=list)

    def command(self, launcher: str, *options: str) -> list[str]:
        program = [f"{self.lab.shared}/venv/bin/python", f"{self.lab.shared}/app.py"]
        return ["run", *options, "--", *LAUNCHERS[launcher], *program]

    def install(self, launchers: Iterable[str] = LAUNCHERS) -> None:
        shared = self.lab.shared
        script = (
            f"set -e; /usr/bin/python3 -m venv --without-pip {shared}/venv; "
            f"p=$(echo {shared}/venv/lib/python3*/site-packages)/pkg; mkdir $p; "
            "echo 'x = 1' | tee $p/__init__.py $p/a.py > $p/b.py; "
            f"cat > {shared}/app.py <<'END'\n{APP}END\n"
        )
        self.lab.exec("n0", ["/bin/sh", "-c", script], check=True)
        for launcher in launchers:
            first = Run(self, self.command(launcher))
            first.ends()
            if first.process.returncode or first.said("without an image"):
                raise SystemExit(f"a sound run failed: {[line for _, line in first.lines]}")

    def in_memory(self) -> dict[str, list[str]]:
        found = {}
        for node in self.lab.nodes:
            shm = self.lab.host_path(node, "/dev/shm")
            found[node] = [path.name for path in shm.glob("brigade-*/[0-9a-f]*")]
        return {node: names for node, names in found.items() if names}

    def note(self, fault: str, step: str, launcher: str, seconds: float, run: Run) -> None:
        """Take the sample, when memory had its time to be freed."""
        until = time.monotonic() + LEFT_S
        while self.in_memory() and time.monotonic() < until:
            time.sleep(0.05)
        words = [line for _, line in run.lines if line.startswith("brigade: ")]
        sample = {
            "fault": fault, "step": step, "launcher": launcher, "seconds": seconds,
            "status": run.process.poll(), "said": words[:2], "left": sorted(self.in_memory()),
        }  # fmt: skip
        self.samples.append(sample)
        left = f"left on {', '.join(sample['left'])}" if sample["left"] else "nothing left"
        print(f"{fault:34} {step:8} {launcher:8} {seconds:5.1f} s  {left:16} "
              f"status {sample['status']}  {words[:1]}", flush=True)  # fmt: skip

    def wipe(self) -> None:
        for node in self.lab.nodes:
            script = "rm -rf /dev/shm/brigade-*/[0-9a-f]*"
            self.lab.exec(node, ["/bin/sh", "-c", script], check=True)
        self.lab.exec("n0", ["scancel", "--user", "root"], check=True)  # what salloc was given


# ---- the faults ----


def killed_staging(bench: Bench) -> None:
    for launcher in LAUNCHERS:
        for what, point in (
            ("reader killed", "stage.kill:0@0"),
            ("another node's process killed", "stage.kill:0@2"),
            ("killed before it has looked", "stage.step:0@1"),
            ("killed before it publishes", "stage.step:3@2"),
        ):
            run = Run(bench, bench.command(launcher), BRIGADE_FAULT=point)
            seconds = run.decides() - run.started
            run.ends()
            bench.note(what, "stage", launcher, seconds, run)


def signals(bench: Bench) -> None:
    for launcher in LAUNCHERS:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            run = Run(bench, bench.command(launcher), BRIGADE_FAULT="stage.slow:3000000")
            run.until(lambda: len(bench.in_memory()) == 4)
            strike(bench, run, "stage", launcher, number)
        WAIT.touch()
        run = Run(bench, bench.command(launcher, "--renew"), BENCH_WAIT=str(WAIT))
        run.until(lambda: trial_started(bench))
        strike(bench, run, "trial", launcher, signal.SIGTERM)
        run = Run(bench, bench.command(launcher), BENCH_WAIT=str(WAIT))
        run.until(lambda r=run: r.said("started"))
        strike(bench, run, "job", launcher, signal.SIGTERM)
        WAIT.unlink()


def trial_started(bench: Bench) -> bool:
    images = bench.lab.host_path("n0", f"{bench.lab.shared}/images/images")
    return any("started" in log.read_text() for log in images.glob("*.trial-*/output.log"))


def strike(bench: Bench, run: Run, step: str, launcher: str, number: signal.Signals) -> None:
    begin = time.monotonic()
    run.process.send_signal(number)
    bench.note(f"{number.name} to brigade run", step, launcher, run.ends() - begin, run)


def killed_run(bench: Bench) -> None:
    for launcher in LAUNCHERS:
        run = Run(bench, bench.command(launcher), BRIGADE_FAULT="stage.slow:3000000")
        run.until(lambda: len(bench.in_memory()) == 4)
        begin = time.monotonic()
        run.process.kill()
        while bench.in_memory() and time.monotonic() < begin + 30:
            time.sleep(0.02)
        bench.note("SIGKILL to brigade run", "stage", launcher, time.monotonic() - begin, run)
        bench.wipe()


def cut(lab: Lab, node: str) -> None:
    """Take the node off the network; its processes go on, and nobody hears of them."""
    lab.exec(node, ["ip", "link", "set", "eth0", "down"], check=True)


def end_on(lab: Lab, node: str) -> None:
    """All processes of the node but the lab's own holder, as if it were switched off."""
    holder = (lab.plan.state / "pid" / node).read_text().strip()
    for pid in namespaces.processes([lab.plan.pins(node)]):
        if str(pid) != holder:
            os.kill(pid, signal.SIGKILL)


def lost_nodes(name: str, samples: list[dict[str, Any]]) -> None:
    """Each in a lab of its own: a lost node is not won back."""
    for launcher in LAUNCHERS:
        for what, loss in (("node off the network", cut), ("node switched off", end_on)):
            for step in ("before", "stage", "job"):
                if (launcher != "srun" or loss is end_on) and step != "stage":
                    continue
                lab = Lab.up(name=name, nodes=4)
                try:
                    bench = Bench(lab, samples)
                    bench.install([launcher])
                    lose(bench, loss, what, step, launcher)
                finally:
                    lab.down()


def lose(
    bench: Bench, loss: Callable[[Lab, str], None], what: str, step: str, launcher: str
) -> None:
    options = () if step == "job" else ("--strict",)
    WAIT.touch()  # for a program that waits
    if step == "before":
        loss(bench.lab, LOST)
        run = Run(bench, bench.command(launcher, *options))
        begin = run.started
    elif step == "stage":
        run = Run(bench, bench.command(launcher, *options), BRIGADE_FAULT="stage.slow:3000000")
        run.until(lambda: len(bench.in_memory()) == 4)
        loss(bench.lab, LOST)
        begin = time.monotonic()
    else:
        run = Run(bench, bench.command(launcher), BENCH_WAIT=str(WAIT))
        run.until(lambda r=run: r.said("started"))
        loss(bench.lab, LOST)
        run.process.send_signal(signal.SIGTERM)  # the launcher's own waiting is not ours
        begin = time.monotonic()
    bench.note(what, step, launcher, run.ends() - begin, run)


def hanging(bench: Bench) -> None:
    """No word from a launcher: one that hangs, and one that looks for a host in vain."""
    path = bench.lab.host_path("n0", f"{bench.lab.shared}/mpirun")
    path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && { echo "Open MPI"; exit; }\n'
        'case "$*" in *brigade-stage*) exec sleep 1000;; esac\n'
        'while [ "${1#-}" != "$1" ]; do [ "$1" = -n ] && shift; shift; done\nexec "$@"\n'
    )
    path.chmod(0o755)
    LAUNCHERS["hangs"] = [f"{bench.lab.shared}/mpirun", "-n", "1"]
    run = Run(bench, bench.command("hangs"))
    run.until(lambda: run.said("making an image") or run.said("without an image"))
    seconds = run.decides() - run.started
    run.ends()
    bench.note("launcher starts nothing", "stage", "mpirun", seconds, run)
    run = Run(bench, ["clean", "--", "mpiexec.mpich", "-hosts", "no.such.host"])
    bench.note("no such host", "clean", "mpiexec", run.ends() - run.started, run)
    del LAUNCHERS["hangs"]


def memory(bench: Bench) -> None:
    bench.lab.exec(LOST, ["mount", "-o", "remount,size=64k", "/dev/shm"], check=True)
    for launcher in LAUNCHERS:
        run = Run(bench, bench.command(launcher))
        seconds = run.decides() - run.started
        run.ends()
        bench.note("full tmpfs on one node", "stage", launcher, seconds, run)
    bench.lab.exec(LOST, ["mount", "-o", "remount,size=50%", "/dev/shm"], check=True)


def slurm(bench: Bench) -> None:
    """Slurm ends the step or the job, as it does at a time limit too."""
    WAIT.touch()
    for what in ("scancel of the job", "scancel of the step"):
        run = Run(bench, bench.command("srun"), BENCH_WAIT=str(WAIT))
        run.until(lambda r=run: r.said("started"))
        listed = ["squeue", "--noheader", "--steps", "--format", "%i"]
        steps = bench.lab.exec("n0", listed, stdout=PIPE, text=True).stdout.split()
        step = next(step for step in steps if step.partition(".")[2].isdigit())
        target = step.partition(".")[0] if "job" in what else step
        begin = time.monotonic()
        bench.lab.exec("n0", ["scancel", target], check=True)
        bench.note(what, "job", "srun", run.ends() - begin, run)
        bench.wipe()
    WAIT.unlink()


GROUPS = {
    "killed": killed_staging, "signal": signals, "run": killed_run, "hang": hanging,
    "memory": memory, "slurm": slurm,
}  # fmt: skip


def carry_out(chosen: list[str], name: str, samples: list[dict[str, Any]]) -> None:
    if set(chosen) - {"node"}:
        lab = Lab.up(name=name, nodes=4)
        try:
            bench = Bench(lab, samples)
            bench.install()
            for group in chosen:
                if group != "node":
                    GROUPS[group](bench)
        finally:
            lab.down()
    if "node" in chosen:
        lost_nodes(name, samples)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=[*GROUPS, "node"], default=None)
    parser.add_argument("--lab", default="faults", help="name of the lab to bring up")
    parser.add_argument("--out", type=Path, default=Path("out/faults"))
    options = parser.parse_args()
    chosen = options.only or [*GROUPS, "node"]
    samples: list[dict[str, Any]] = []
    try:
        carry_out(chosen, options.lab, samples)
    finally:
        settings = {"groups": chosen, "patience_s": PATIENCE, "nodes": 4}
        save(options.out / "faults.json", "faults", settings, samples)
    late = [s for s in samples if s["seconds"] > 10]
    print(f"\n{len(samples)} faults, {len(late)} of them took more than 10 s")
    return 0


if __name__ == "__main__":
    end_in_order()
    sys.exit(main())
