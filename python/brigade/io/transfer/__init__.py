"""Files of named arrays to HDF5 and Zarr and back, by those formats' own libraries.

Arrays are copied block by block, so memory does not grow with them; what is made appears under its
name when it is complete. What the other side has no words for is told, never left out in silence.
"""
