/* Error handlers that are the program's functions, as they are called for files that MPI opens late
 * (late.h): MPI calls them with its own handle of such a file, which the program has never seen.
 *
 * So when the program makes a handler, MPI is given a function of ours for its own: one that
 * passes on all that MPI says, with the handle of the program's. All else of handlers stays
 * MPI's: which one a file has, who else uses it, and when it ends. */
#ifndef BRG_MPIIO_LATE_HANDLER_H
#define BRG_MPIIO_LATE_HANDLER_H

#include "mpiio/hooks.h"

/* What MPI is to call for this function: always the same for the same one. Where there are no more
 * to be had, the function itself, which is called with MPI's handles then. Any thread. */
word late_handler_of(word function);

/* Until it is NULL again, what goes wrong in this thread with a file that nobody knows, or with
 * none, goes wrong with this one: MPI is opening it. */
void late_handler_opening(struct file *file);

#endif
