"""What the benchmarks share: samples with host and commit, the installed stack, figures."""
