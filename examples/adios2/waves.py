"""An ADIOS2 program in Python: waves, written step by step by all ranks into one file a step, and
read back. The wheel of ADIOS2 knows no MPI; Ranks=world lets Brigade find the ranks by itself.

    mpirun -n 4 python waves.py libBrigadeEngine.so waves.bp
"""

import sys

import adios2
import numpy as np
from mpi4py import MPI

rank, ranks = MPI.COMM_WORLD.rank, MPI.COMM_WORLD.size
n, steps = 1000, 3
first, last = n * rank // ranks, n * (rank + 1) // ranks
engine = {"PluginName": "brigade", "PluginLibrary": sys.argv[1], "File": sys.argv[2]}
adios = adios2.Adios()


def io(name: str) -> adios2.IO:
    made = adios.declare_io(name)
    made.set_engine("Plugin")
    made.set_parameters({**engine, "Ranks": "world"})
    return made


with adios2.Stream(io("out"), sys.argv[2], "w") as out:
    out.write_attribute("unit", "metre")
    for _ in out.steps(steps):
        step = out.current_step()
        wave = np.sin(0.01 * np.arange(first, last) + step)
        out.write("wave", wave, [n], [first], [last - first])
        out.write("time", step)

with adios2.Stream(io("in"), sys.argv[2], "r") as found:
    for _ in found.steps():
        step = int(found.read("time"))
        wave = found.read("wave", [0], [n])
        right = np.array_equal(wave, np.sin(0.01 * np.arange(n) + step))
        if rank == 0:
            print(step, right, found.read_attribute("unit"))
