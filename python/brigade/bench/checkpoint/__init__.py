"""The checkpoint benchmark: the same bytes written and read by Brigade and by its peers.

plan.py says what is written (patterns, record sizes, back ends; pure); program.py compiles
drivers/checkpoint/ with the MPI's own compiler, once; measure.py runs it in rounds, in each of
which every back end has its turn; summary.py makes medians and ratios of the samples; table.py and
figure.py show them. align.py is the benchmark of headers before large blocks; rival.py is a
neighbour on the file system.
"""
