"""Heat in a plate, whose left edge is hot: each rank holds some of the rows. It goes on where its
checkpoint stopped, on any number of ranks that have a row each.

    mpirun -n 4 python heat.py heat.ckpt 50; mpirun -n 2 python heat.py heat.ckpt 50
"""

import errno
import sys

import numpy as np
from mpi4py import MPI

import brigade.io

N = 64
world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
path = sys.argv[1] if len(sys.argv) > 1 else "heat.ckpt"
steps = int(sys.argv[2]) if len(sys.argv) > 2 else 50
first, last = N * rank // ranks, N * (rank + 1) // ranks
u = np.zeros((last - first + 2, N))  # the first and the last row belong to the neighbours
mine = u[1:-1]
done = 0


def step() -> None:
    up = rank - 1 if rank else MPI.PROC_NULL
    down = rank + 1 if rank < ranks - 1 else MPI.PROC_NULL
    world.Sendrecv(u[1], up, recvbuf=u[-1], source=down)
    world.Sendrecv(u[-2], down, recvbuf=u[0], source=up)
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    mine[:, 1:-1] = 0.25 * around


try:
    with brigade.io.open(world, path) as file:
        mine[:] = file.read_array("u", start=(first, 0), count=mine.shape)
        done = int(file.attrs["step"])
except brigade.io.BrigadeIOError as error:  # the same on every rank
    if error.errno != errno.ENOENT:
        raise
    mine[:, 0] = 100

for _ in range(steps):
    step()
done += steps

with brigade.io.open(world, path, "w") as file:  # until its end, the old checkpoint is there
    file.write_array("u", mine, shape=(N, N), start=(first, 0))
    file.attrs["step"] = done
if rank == 0:
    print(f"{done} steps in {path}")
