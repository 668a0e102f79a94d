"""What bench/broadcast.py starts: imports after `brigade.imports.broadcast`, plain ones, or none.

    broadcast.py broadcast|plain|start [IMAGE]

Rank 0 prints one JSON line: the modules each rank has, and how long the imports took it.
"""

import json
import sys
import time

from mpi4py import MPI

comm, how = MPI.COMM_WORLD, sys.argv[1]
begin = time.monotonic()
report = {}
if how == "broadcast":
    import brigade.imports

    brigade.imports.broadcast(comm, sys.argv[2], strict=True)
    report = brigade.imports.report().as_json()
if how != "start":
    import numpy  # noqa: F401
    import scipy.optimize
    import scipy.sparse.linalg
    import scipy.stats  # noqa: F401

seconds = comm.gather(time.monotonic() - begin)
modules = comm.gather(sum(name.startswith(("numpy", "scipy")) for name in sys.modules))
nodes = len(set(comm.allgather(MPI.Get_processor_name())))
if comm.rank == 0:
    print(json.dumps({"nodes": nodes, "seconds": seconds, "modules": modules, "report": report}))
