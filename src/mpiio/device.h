/* Memory of an accelerator, which no system call and no copy of ours can reach: an MPI that can
 * does the call. */
#ifndef BRG_MPIIO_DEVICE_H
#define BRG_MPIIO_DEVICE_H

/* Looks for a driver's library (CUDA's, HIP's) among the objects of the process, if any came since
 * it was last done. Nothing is loaded. */
void device_look(void);
/* 1: such a library says that this is a device's, and not managed, which the host can reach too. */
int device_has(const void *memory);

#endif
