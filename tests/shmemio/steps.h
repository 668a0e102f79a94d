/* Programs of steps, what calls of which say is printed.
 *
 *   PROGRAM KIND LIBRARY FOLDER STEP...
 *
 * The file is FOLDER/file, or of several steps FOLDER/STEP/file. Every rank prints a line for each
 * call that fails: the step, and job_tell. */
#ifndef BRG_TEST_SHMEMIO_STEPS_H
#define BRG_TEST_SHMEMIO_STEPS_H

#include "claim.h"
#include "job.h"

#define BLOCK 60000

struct step {
    const char *name;
    void (*run)(void);
};

static struct job job;
static char path[4096];
static const char *step;

static inline int told(const char *call, int code)
{
    char where[64];
    snprintf(where, sizeof where, "%s %s", step, call);
    if (code)
        job_tell(where, code);
    return code;
}

static inline SHMEM_File opened(int amode, const char *key, const char *value)
{
    SHMEM_File f = SHMEM_FILE_NULL;
    SHMEM_Info info = SHMEM_INFO_NULL;
    if (key) {
        SHMEM_Info_create(&info);
        SHMEM_Info_set(info, key, value);
    }
    if (told("open", SHMEM_File_open(SHMEM_COMM_WORLD, path, amode, info, &f)))
        job_end(&job, failures);
    if (key)
        SHMEM_Info_free(&info);
    return f;
}

/* From a byte on, 100 bytes of each so many are seen. */
static inline int see_rows(SHMEM_File f, SHMEM_Offset from, int apart)
{
    SHMEM_Datatype rows;
    SHMEM_Type_vector(BLOCK / 100, 100, apart, SHMEM_CHAR, &rows);
    SHMEM_Type_commit(&rows);
    int code = SHMEM_File_set_view(f, from, SHMEM_CHAR, rows, "native", SHMEM_INFO_NULL);
    SHMEM_Type_free(&rows);
    return code;
}

/* A block of each rank, in turns of 100 bytes: every window has bytes of all. */
static inline int write_blocks(SHMEM_File f, char fill)
{
    static char block[BLOCK];
    memset(block, fill, sizeof block);
    int code = see_rows(f, 100 * job.me, 100 * job.all);
    return code ? code
                : SHMEM_File_write_at_all(f, 0, block, BLOCK, SHMEM_CHAR, SHMEM_STATUS_IGNORE);
}

/* Those that the words ask for. */
static inline void steps_run(int argc, char **argv, const struct step *steps, size_t n)
{
    if (argc < 5)
        exit(2);
    job_start(&job, argv + 1);
    for (int word = 4; word < argc; word++) {
        step = argv[word];
        snprintf(path, sizeof path, "%s/%s/file", argv[3], argc > 5 ? step : ".");
        for (size_t i = 0; i < n; i++)
            if (strcmp(steps[i].name, step) == 0)
                steps[i].run();
    }
    job_end(&job, failures);
}

#endif
