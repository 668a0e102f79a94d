"""A step of our own whose first process is told something on its standard input."""

from brigade.launch.openmpi import OpenMpiLaunch
from brigade.launch.srun import SrunLaunch


def test_what_starts_early_differs_from_the_step_in_its_input_alone():
    launch = SrunLaunch(["srun", "-N", "4", "-n", "32", "--mpi=pmix", "./app"])
    step, told = launch.per_node(["T"]), launch.per_node_told(["T"])
    at = step.index("--input") + 1
    assert (step[at], told[at]) == ("none", "0")
    assert step[:at] + step[at + 1 :] == told[:at] + told[at + 1 :]
    assert OpenMpiLaunch(["mpirun", "./a"], "/usr/bin/orterun").per_node_told(["T"]) is None
