/* The job that a test of brigade/shmemio.h runs in: `shmem LIBRARY` or `windows LIBRARY` on its
 * command line, an OpenSHMEM's or an MPI's, loaded here: one program serves all. */
#ifndef BRG_TEST_SHMEMIO_JOB_H
#define BRG_TEST_SHMEMIO_JOB_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "brigade/shmemio.h"

struct job {
    void *library;
    int shmem, me, all;
};

static inline void *job_call(const struct job *job, const char *name)
{
    void *call = dlsym(job->library, name);
    if (!call) {
        printf("FAIL no %s\n", name);
        exit(1);
    }
    return call;
}

static inline void job_start(struct job *job, char **words)
{
    job->shmem = !strcmp(words[0], "shmem");
    job->library = dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
    if (!job->library) {
        printf("FAIL %s\n", dlerror());
        exit(1);
    }
    if (job->shmem) {
        void (*init)(void);
        int (*number)(void);
        *(void **)&init = job_call(job, "shmem_init");
        init();
        *(void **)&number = job_call(job, "shmem_my_pe");
        job->me = number();
        *(void **)&number = job_call(job, "shmem_n_pes");
        job->all = number();
        return;
    }
    int (*init)(int *, char ***);
    *(void **)&init = job_call(job, "MPI_Init");
    init(NULL, NULL);
    const char *me = getenv("OMPI_COMM_WORLD_RANK"), *all = getenv("OMPI_COMM_WORLD_SIZE");
    job->me = atoi(me ? me : getenv("PMI_RANK"));
    job->all = atoi(all ? all : getenv("PMI_SIZE"));
}

/* Ends the process: with 0 if it has no failures. */
static inline void job_end(const struct job *job, int n_failures)
{
    void (*finalize)(void);
    *(void **)&finalize = job_call(job, job->shmem ? "shmem_finalize" : "MPI_Finalize");
    if (!n_failures)
        printf("ok %d of %d\n", job->me, job->all);
    fflush(stdout);
    finalize();
    exit(n_failures != 0);
}

/* Prints a failure of a call, as a test compares them: code, the rank that met it, offset, path. */
static inline void job_tell(const char *call, int code)
{
    const struct brg_error *e = SHMEM_Last_error();
    const char *slash = strrchr(e->path, '/');
    printf("%s: %d (%d) rank %d offset %lld %s: %s\n", call, code, e->code, e->rank,
           (long long)e->offset, slash ? slash : e->path, e->text);
    fflush(stdout);
}

#endif
