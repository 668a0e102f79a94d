"""IOR, our own: a program with IOR's options, semantics and table, and a comparison of back ends.

drivers/ior/ is the program, `brigade-ior`, which works alone under any launcher; options.py reads
its list of options; program.py compiles it; measure.py runs it in turns and keeps every sample;
compare.py makes medians and ratios of them in the form that was published; presets.py has the
published runs.
"""
