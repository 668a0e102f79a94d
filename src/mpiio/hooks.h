/* How a call of MPI's is stood before: what hooks.c and hooks_late.c share. No header of an MPI is
 * included in either. */
#ifndef BRG_MPIIO_HOOKS_H
#define BRG_MPIIO_HOOKS_H

#include "brigade/error.h"
#include "mpi/next.h"
#include "mpiio/call.h"
#include "mpiio/late.h"
#include "mpiio/report.h"

/* An argument, whatever it means. */
typedef uintptr_t word;

/* Calls of MPI that this library is in, in this thread. */
extern _Thread_local int hooks_inside;
/* What report_call is told: the program's, not one that MPI makes within it. */
static inline void hooks_call(const char *name)
{
    if (!hooks_inside)
        report_call(name + (name[0] == 'P'));
}

enum {
    MPI_FAILED = 1, /* not 0, in any MPI: there is none behind this library */
};

/* What comes next in MPI. Programs that find a form for large counts here (mpi4py's wheels look for
 * each by itself) must have it, though the MPI is older: then it is the form for an int. */
void *hooks_next(const char *name);
/* Whether a count is more than MPI's forms take; and the end of such a call: the file's error
 * handler is told. */
int hooks_too_many(int64_t count);
int hooks_refuse_count(word handle);

/* The file of a handle that came from the program, or of a late one, whoever passes it; or NULL. */
struct file *hooks_file(word handle);

/* *handle becomes the one that MPI has (late_handle); what is no file of ours stays. MPI's code. */
int hooks_handle(struct file *file, enum with with, word *handle);

/* HOOK(type of the call, name, parameters, body with `next`) */
#define HOOK_AS(kind, name, parameters, body)    \
    BRG_API int name parameters;                 \
    int name parameters                          \
    {                                            \
        static kind *next;                       \
        if (!next)                               \
            *(void **)&next = hooks_next(#name); \
        hooks_call(#name);                       \
        return next ? body : MPI_FAILED;         \
    }
#define HOOK(kind, name, parameters, body)      \
    HOOK_AS(kind, MPI_##name, parameters, body) \
    HOOK_AS(kind, PMPI_##name, parameters, body)

#endif
