/* What programs share that call files, which MPI may not have opened yet: FILE WHAT, and a line of
 * each rank. */
#ifndef LATE_DRIVER_H
#define LATE_DRIVER_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, handled;
static char buf[1 << 16], line[4000];

static inline void say(const char *name, long long value)
{
    size_t used = strlen(line);
    snprintf(line + used, sizeof line - used, " %s=%lld", name, value);
}

static inline int class_of(int rc)
{
    int class = MPI_SUCCESS;
    if (rc)
        MPI_Error_class(rc, &class);
    return class;
}

static inline void handle(MPI_File *file, int *code, ...)
{
    (void)file, (void)code;
    handled++;
}

static inline MPI_File open_file(const char *path, int mode)
{
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file))
        MPI_Abort(MPI_COMM_WORLD, 1);
    return file;
}

#define FOR_ALL (MPI_MODE_CREATE | MPI_MODE_RDWR)

/* Blocks of `n` of a type in turns. */
static inline void set_turns_of(MPI_File file, MPI_Offset from, MPI_Datatype type, int n)
{
    MPI_Datatype turns;
    int all[1] = {n * size}, mine[1] = {n}, start[1] = {n * rank};
    MPI_Type_create_subarray(1, all, mine, start, MPI_ORDER_C, type, &turns);
    MPI_Type_commit(&turns);
    MPI_File_set_view(file, from, type, turns, "native", MPI_INFO_NULL);
    MPI_Type_free(&turns);
}

static inline void set_turns(MPI_File file, int n)
{
    set_turns_of(file, 4, MPI_INT, n);
}

/* A number that any byte of the file changes. */
static inline void say_bytes(const char *path)
{
    unsigned long long sum = 0;
    int c;
    MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = fopen(path, "r");
    while (file && (c = getc(file)) != EOF)
        sum = sum * 31 + (unsigned)c;
    say("size", file ? ftell(file) : -1);
    say("bytes", (long long)(sum >> 1));
    if (file)
        fclose(file);
}

struct what {
    const char *name;
    void (*make)(const char *path);
};

static inline int late_main(int argc, char **argv, int level, const struct what *all, size_t n)
{
    if (getenv("LATE_THREADS"))
        level = MPI_THREAD_MULTIPLE;
    MPI_Init_thread(&argc, &argv, level, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; i < sizeof buf; i++)
        buf[i] = (char)(i * 7 + (size_t)rank);
    for (size_t i = 0; i < n; i++)
        if (strcmp(all[i].name, argv[2]) == 0)
            all[i].make(argv[1]);
    printf("rank %d:%s\n", rank, line);
    MPI_Finalize();
    return 0;
}

#endif
