"""Poisson's equation with DOLFINx: its forms are compiled to C, built, and imported."""

import sys

import numpy
import ufl
from dolfinx import __version__, fem, mesh
from dolfinx.fem.petsc import LinearProblem
from mpi4py import MPI
from petsc4py import PETSc

square = mesh.create_unit_square(MPI.COMM_WORLD, 8, 8)
space = fem.FunctionSpace(square, ("CG", 1))
sides = mesh.locate_entities_boundary(
    square, 1, lambda x: numpy.isclose(x[0], 0) | numpy.isclose(x[0], 1)
)
edge = fem.dirichletbc(PETSc.ScalarType(0), fem.locate_dofs_topological(space, 1, sides), space)
u, v = ufl.TrialFunction(space), ufl.TestFunction(space)
load = 10 * ufl.SpatialCoordinate(square)[1]
problem = LinearProblem(
    ufl.inner(ufl.grad(u), ufl.grad(v)) * ufl.dx,
    load * v * ufl.dx,
    bcs=[edge],
    petsc_options={"ksp_type": "preonly", "pc_type": "lu"},
)
solution = problem.solve()
print(__version__, "norm", round(solution.x.norm(), 6), len(solution.x.array))
print(fem.__file__, PETSc.__file__, len(sys.modules), sys.path)
