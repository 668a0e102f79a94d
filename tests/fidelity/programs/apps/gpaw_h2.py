"""A hydrogen molecule: energy and forces with GPAW's own compiled parts, libxc and ScaLAPACK."""

import sys

import ase
import gpaw
import gpaw.mpi
import numpy
import scipy
from ase import Atoms

h2 = Atoms("H2", positions=[(0, 0, 0), (0, 0, 0.74)], cell=(4, 4, 4))
h2.center()
h2.calc = gpaw.GPAW(mode="lcao", basis="dzp", h=0.25, txt=None, xc="PBE")
energy, forces = h2.get_potential_energy(), h2.get_forces()
if gpaw.mpi.world.rank == 0:
    print("energy", round(energy, 3), abs(forces).round(2).tolist(), gpaw.mpi.world.size)
    for module in (ase, gpaw, numpy, scipy):
        print(module.__version__, module.__file__)
    print(len(sys.modules), sys.path)
