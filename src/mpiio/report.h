/* What was done here and what was left to MPI, and why: with BRIGADE_MPIIO=verbose it is printed
 * when MPI ends, by rank 0 about itself. */
#ifndef BRG_MPIIO_REPORT_H
#define BRG_MPIIO_REPORT_H

#include <stdint.h>

/* Whether BRIGADE_MPIIO says that nothing is to be taken over. */
int report_is_off(void);

/* `why` is a literal. */
void report_passed(const char *why);
/* A call begins: the time, or 0 where nothing will be printed; and it has ended. */
uint64_t report_now(void);
void report_done(int write, uint64_t bytes, uint64_t began_ns, const char *failure);
/* The same of what is no such call. */
void report_failed(const char *failure);
/* A file that was opened without MPI; one of these that MPI has to open later; one that MPI opened
 * as its hints were not known. */
enum report_late {
    LATE_OPENED,
    LATE_BY_MPI,
    LATE_FOR_HINTS
};
void report_late(enum report_late what);
/* The call of MPI's that the program is in, in this thread (a literal): the one that LATE_BY_MPI is
 * counted for. */
void report_call(const char *name);
/* A word about one file. */
void report_file(const char *path, const char *what);

void report_print(int rank);

#endif
