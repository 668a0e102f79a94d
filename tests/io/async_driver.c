/* What programs do with commits in the background. Every rank prints
 *     rank code failed-rank offset tests memory-KiB
 * where code is that of the first call that failed, and tests how often a request was asked. */
#include <mpi.h>

#include "brigade/io.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static int rank, size, tests;
static struct brg_error err = {.rank = -1, .offset = -1};

static char byte_at(uint64_t offset)
{
    return (char)(offset * 2654435761u >> 13);
}

/* Writes [from, from + bytes), a piece at a time, from memory that is used again at once; or, if
 * not `mine`, takes part in as many calls. */
static int write_part(brg_file *f, uint64_t from, uint64_t bytes, int mine, int salt)
{
    static char buf[700001];
    int rc = 0;
    for (uint64_t at = 0; at < bytes && !rc; at += sizeof buf) {
        size_t n = bytes - at < sizeof buf ? (size_t)(bytes - at) : sizeof buf;
        for (size_t i = 0; i < n; i++)
            buf[i] = (char)(byte_at(from + at + i) + salt);
        rc = brg_file_write(f, from + at, buf, mine ? n : 0, &err);
        memset(buf, 0, n);
    }
    return rc;
}

static int open_new(brg_file **f, const char *path, const char *info)
{
    return brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, info, f, &err);
}

static int ask_until_done(brg_request *request)
{
    int done = 0, rc = 0;
    while (!done) {
        rc = brg_request_test(request, &done, &err);
        tests++;
        MPI_Barrier(MPI_COMM_WORLD);
        usleep(2000);
    }
    return rc;
}

static int commit(const char *path, const char *info, uint64_t bytes, const char *how)
{
    brg_file *f;
    brg_request *request;
    int rc = open_new(&f, path, info);
    if (rc)
        return rc;
    rc = write_part(f, (uint64_t)rank * bytes, bytes, 1, 0);
    if (!rc && strcmp(how, "drop") == 0)
        return brg_file_close(f, &err);
    if (!rc)
        rc = brg_file_commit_start(f, &request, &err);
    if (!rc && strcmp(how, "leave") == 0)
        _exit(0);
    if (!rc && strcmp(how, "busy") == 0 && brg_file_write(f, 0, "x", 1, NULL) != -16)
        rc = -1;
    if (!rc && strcmp(how, "close") == 0) {
        rc = brg_file_close(f, &err);
        int later = brg_request_wait(request, &err);
        return rc != later ? -1 : rc;
    }
    if (!rc)
        rc = strcmp(how, "wait") ? ask_until_done(request) : brg_request_wait(request, &err);
    brg_file_close(f, NULL);
    return rc;
}

/* Rank 0 is late: much of what it wrote before is still to be drained. */
static int rewrite(const char *path, const char *info, uint64_t bytes)
{
    brg_file *f;
    int rc = open_new(&f, path, info);
    if (!rc)
        rc = write_part(f, bytes, 7 * bytes, rank == 0, 0);
    if (!rc)
        rc = write_part(f, 0, bytes, rank == 0, 1);
    if (!rc)
        rc = write_part(f, 0, bytes, rank == size - 1, 0);
    if (!rc)
        rc = brg_file_commit(f, &err);
    brg_file_close(f, NULL);
    return rc;
}

static int two(const char *path, const char *info, uint64_t bytes)
{
    brg_file *f[2];
    brg_request *request[2];
    char name[4096];
    int rc = 0;
    for (int i = 0; i < 2 && !rc; i++) {
        snprintf(name, sizeof name, "%s.%d", path, i);
        rc = open_new(&f[i], name, info);
        if (!rc)
            rc = write_part(f[i], (uint64_t)rank * bytes, bytes, 1, 0);
        if (!rc)
            rc = brg_file_commit_start(f[i], &request[i], &err);
    }
    for (int i = 1; i >= 0 && !rc; i--) {
        rc = brg_request_wait(request[i], &err);
        brg_file_close(f[i], NULL);
    }
    return rc;
}

/* async_driver HOW PATH INFO BYTES [LIMIT]: BYTES a rank; rank 1 may make files of LIMIT bytes. */
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *how = argv[1], *path = argv[2], *info = argv[3];
    uint64_t bytes = strtoull(argv[4], NULL, 10);
    if (argc > 5 && rank == 1) {
        rlim_t limit = strtoull(argv[5], NULL, 10);
        signal(SIGXFSZ, SIG_IGN);
        setrlimit(RLIMIT_FSIZE, &(struct rlimit){limit, limit});
    }
    int rc = strcmp(how, "rewrite") == 0 ? rewrite(path, info, bytes)
             : strcmp(how, "two") == 0   ? two(path, info, bytes)
                                         : commit(path, info, bytes, how);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    char line[2400];
    int n = snprintf(line, sizeof line, "%d %d %d %lld %d %ld %s\n", rank, rc, rc ? err.rank : -1,
                     rc ? (long long)err.offset : -1, tests, usage.ru_maxrss, rc ? err.path : "");
    if (write(1, line, (size_t)n) != n)
        return 1;
    MPI_Finalize();
    return 0;
}
