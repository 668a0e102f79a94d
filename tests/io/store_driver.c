/* Every rank writes its own block of a file, in calls, and commits. Prints, for each rank, what it
 * was told:
 *     rank code failed-rank offset path
 * store_driver PATH create|update|exclusive|read HINTS BYTES CALLS SALT */
#ifdef BRG_NO_MPI
static int rank, size = 1;
#else
#include <mpi.h>
static int rank, size;
#endif

#include "brigade/io.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct brg_error err = {.rank = -1, .offset = -1};

static char byte_at(uint64_t offset, int salt)
{
    return (char)((offset * 2654435761u >> 13) + (unsigned)salt);
}

static int write_all(brg_file *f, size_t bytes, int calls, int salt)
{
    int rc = 0;
    uint64_t first = (uint64_t)rank * bytes;
    char *buf = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        buf[i] = byte_at(first + i, salt);
    for (int c = 0; !rc && c < calls; c++) {
        size_t from = bytes * (size_t)c / (size_t)calls;
        size_t to = bytes * (size_t)(c + 1) / (size_t)calls;
        rc = brg_file_write(f, first + from, buf + from, to - from, &err);
    }
    free(buf);
    return rc ? rc : brg_file_commit(f, &err);
}

static int read_all(brg_file *f, size_t bytes, int salt)
{
    char *buf = malloc(bytes);
    uint64_t first = (uint64_t)rank * bytes;
    int rc = brg_file_read(f, first, buf, bytes, &err);
    for (size_t i = 0; !rc && i < bytes; i++)
        if (buf[i] != byte_at(first + i, salt))
            rc = 1; /* bytes that nobody wrote */
    free(buf);
    return rc;
}

static int run(char **words)
{
    static const struct {
        const char *name;
        unsigned flags;
    } ways[] = {{"create", BRG_WRITE | BRG_CREATE},
                {"update", BRG_WRITE},
                {"exclusive", BRG_WRITE | BRG_CREATE | BRG_EXCLUSIVE},
                {"read", BRG_READ}};
    size_t bytes = strtoull(words[4], NULL, 10);
    brg_file *f;
    unsigned flags = 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(ways[i].name, words[2]) == 0)
            flags = ways[i].flags;
#ifdef BRG_NO_MPI
    int rc = brg_file_open_alone(words[1], flags, words[3], &f, &err);
#else
    int rc = brg_file_open(MPI_COMM_WORLD, words[1], flags, words[3], &f, &err);
#endif
    if (rc)
        return rc;
    rc = flags & BRG_READ ? read_all(f, bytes, atoi(words[6]))
                          : write_all(f, bytes, atoi(words[5]), atoi(words[6]));
    struct brg_error first = err;
    brg_file_close(f, &err);
    err = first;
    return rc;
}

int main(int argc, char **argv)
{
#ifndef BRG_NO_MPI
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#endif
    int rc = argc == 7 ? run(argv) : 2;
    printf("%d %d %d %lld %s\n", rank, rc, err.rank, (long long)err.offset, err.path);
    fflush(stdout);
#ifndef BRG_NO_MPI
    MPI_Finalize();
#endif
    return 0;
}
