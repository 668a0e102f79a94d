"""Studies: the same start-up in several variants, measured in turn, with a conclusion in words."""
