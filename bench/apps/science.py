"""A small scientific program with a large start-up: what `make demo` and bench/startup.py start.

Each rank imports a real stack, then all of them estimate one integral together and rank 0 prints
the result, and, as one JSON line, how long after BENCH_T0 (CLOCK_REALTIME seconds) each rank
reached the first line after its imports, what processor time they had used and how often they had
gone to sleep by then, and what memory the ranks have for themselves.
"""

import matplotlib
import matplotlib.pyplot
import numpy as np
import pandas as pd
import scipy.optimize
import scipy.sparse.linalg
import scipy.stats
from mpi4py import MPI

import resource  # isort: skip
import time  # isort: skip

FIRST_LINE = time.time()
USED = resource.getrusage(resource.RUSAGE_SELF)

import json  # noqa: E402
import os  # noqa: E402

SAMPLES = 20_000


def estimate(comm):
    """The integral of x^2 over a standard normal distribution (it is 1), from all ranks'
    samples.
    """
    draws = scipy.stats.norm.rvs(size=SAMPLES, random_state=np.random.default_rng(comm.rank))
    total = comm.allreduce(float(np.sum(draws**2)))
    return total / (SAMPLES * comm.size)


def proportional(pid):
    """{pid: bytes} of a process that runs this program, shared pages divided among those that
    share them; of another one nothing: a rank that was forked has a parent that counts, too.
    """
    with open("/proc/self/cmdline", "rb") as own, open(f"/proc/{pid}/cmdline", "rb") as other:
        if own.read() != other.read():
            return {}
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        return {pid: sum(int(line.split()[1]) << 10 for line in lines if line.startswith("Pss:"))}


def main():
    comm = MPI.COMM_WORLD
    value = estimate(comm)
    root = scipy.optimize.brentq(lambda x: x * x - value, 0, 2)
    seconds = comm.gather(FIRST_LINE - float(os.environ.get("BENCH_T0", FIRST_LINE)))
    nodes = len(set(comm.allgather(MPI.Get_processor_name())))
    processor = comm.reduce(USED.ru_utime + USED.ru_stime)
    sleeps = comm.reduce(USED.ru_nvcsw)
    memory = comm.gather({**proportional(os.getpid()), **proportional(os.getppid())})
    if comm.rank == 0:
        table = pd.DataFrame({"seconds": seconds}).describe()
        print(
            f"{comm.size} ranks on {nodes} nodes: second moment {value:.6f}, root {root:.6f}, "
            f"numpy {np.__version__}, matplotlib {matplotlib.__version__}"
        )
        print(
            json.dumps(
                {
                    "ranks": comm.size,
                    "seconds": seconds,
                    "max": table["seconds"]["max"],
                    "processor": processor,
                    "sleeps": sleeps,
                    "bytes": sum({pid: n for each in memory for pid, n in each.items()}.values()),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main()
