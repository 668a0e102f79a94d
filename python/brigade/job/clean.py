"""Remove from nodes what dead jobs of this user have left there; `brigade-stage clean` does it.

A node knows which jobs have processes on it; this host knows which of its own `brigade run` are
alive, though their ranks may not have started. The second is told to the nodes.
"""

from __future__ import annotations

from typing import Any

from brigade.errors import StageError
from brigade.job import standing
from brigade.job.leftovers import known
from brigade.job.stage import node_base
from brigade.job.step import PULSE, run_step
from brigade.launch import Launch, parse_bare
from brigade.launch.slurm import job_is_over
from brigade.paths import native


def clean(
    words: list[str], *, idle_s: int, everything: bool, dry_run: bool
) -> list[dict[str, Any]]:
    """What was found (and, unless `dry_run`, removed), on this node or on those of the launcher
    `words`. `everything`: kept images too. Raises UsageError if that is no launcher,
    StageError if a node did not answer."""
    tool = [str(native("brigade-stage")), "clean", "--base", node_base(), "--idle", str(idle_s)]
    tool += [*known(), *PULSE]
    if everything:
        tool.append("--all")
    if dry_run:
        tool.append("--dry-run")
    launch = parse_bare(words, "brigade clean")
    results = _clean(launch, tool)
    over = _whose_allocation_is_over(results)
    if over:
        tool += ["--over", ",".join(sorted(over))]
        again = _clean(launch, tool)
        results = [result for result in results if result.get("job") not in over]
        results += [result for result in again if result.get("job") in over]
    return [result for result in results if "what" in result]


def _clean(launch: Launch, tool: list[str]) -> list[dict[str, Any]]:
    command, counted = launch.per_node(tool), not launch.is_here
    results, said, status = run_step(command, lambda done, total: None, counted=counted)
    if status or not any(result.get("done") for result in results):
        raise StageError(
            f"cleaning ended with status {status} and said: {said or 'nothing'}",
            hint="is the launcher's command right? `brigade clean` alone cleans this node",
        )
    return results


def _whose_allocation_is_over(results: list[dict[str, Any]]) -> set[str]:
    """Standing jobs (`brigade stage`) that were left alone, and of which Slurm says that the job
    in whose allocation they stand has ended. Nodes do not ask that: not each has Slurm's tools."""
    jobs = {str(result["job"]) for result in results if result.get("job") and result.get("why")}
    slurm = {job: standing.slurm_job_of(job) for job in jobs if standing.slurm_job_of(job)}
    return {job for job, number in slurm.items() if number and job_is_over(number)}
