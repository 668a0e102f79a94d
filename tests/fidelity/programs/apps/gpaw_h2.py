"""A hydrogen molecule: energy and forces with GPAW's own compiled parts, libxc and ScaLAPACK."""

import sys

import ase
import gpaw
import numpy
import scipy
from ase import Atoms

h2 = Atoms("H2", positions=[(0, 0, 0), (0, 0, 0.74)], cell=(4, 4, 4))
h2.center()
h2.calc = gpaw.GPAW(mode="lcao", basis="dzp", h=0.25, txt=None, xc="PBE")
print("energy", round(h2.get_potential_energy(), 4), abs(h2.get_forces()).round(3).tolist())
for module in (ase, gpaw, numpy, scipy):
    print(module.__version__, module.__file__)
print(len(sys.modules), sys.path)
