/* Plain POSIX: every rank writes its own bytes, to one shared file or to a file of its own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cell.h"

struct target {
    int fd, writing;
    char *memory;
};

static int whole(struct target *t, uint64_t offset, char *buf, uint64_t bytes)
{
    while (bytes) {
        ssize_t n = t->writing ? pwrite(t->fd, buf, bytes, (off_t)offset)
                               : pread(t->fd, buf, bytes, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n ? errno : EIO;
        buf += n;
        offset += (uint64_t)n;
        bytes -= (uint64_t)n;
    }
    return 0;
}

static int move_run(void *context, uint64_t offset, uint64_t at, uint64_t bytes)
{
    struct target *t = context;
    return whole(t, offset, t->memory + at, bytes);
}

static int move(const struct cell *cell, struct target *t, const char *path, char *buf, int own,
                struct outcome *outcome)
{
    uint64_t written = 0;
    t->fd = open(path, t->writing ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC, 0666);
    if (t->fd < 0)
        return outcome_fail(outcome, "%s: %s", path, strerror(errno));
    outcome_lap(outcome, OPEN);
    int rc = 0;
    for (int call = 0; call < cell_calls(cell) && !rc; call++) {
        struct block block;
        cell_block(cell, call, &block);
        t->memory = buf + written;
        rc = own ? whole(t, written, t->memory, block.bytes) : block_walk(&block, move_run, t);
        written += block.bytes;
    }
    outcome_lap(outcome, MOVE);
    if (!rc && t->writing && cell->sync && fsync(t->fd) != 0)
        rc = errno;
    if (close(t->fd) != 0 && !rc)
        rc = errno;
    outcome_lap(outcome, CLOSE);
    return rc ? outcome_fail(outcome, "%s: %s", path, strerror(rc)) : 0;
}

/* One rank creates the file: several that do so at once meet EEXIST on some file systems. */
static int shared_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    struct target t = {.writing = 1};
    if (cell->rank == 0)
        close(open(cell->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
    MPI_Barrier(cell->comm);
    return move(cell, &t, cell->path, (char *)buf, 0, outcome);
}

static int shared_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    struct target t = {.writing = 0};
    return move(cell, &t, cell->path, buf, 0, outcome);
}

static int own_file(const struct cell *cell, int writing, char *buf, struct outcome *outcome)
{
    struct target t = {.writing = writing};
    char path[sizeof cell->path + 16];
    snprintf(path, sizeof path, "%s.%d", cell->path, cell->rank);
    return move(cell, &t, path, buf, 1, outcome);
}

static int own_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    return own_file(cell, 1, (char *)buf, outcome);
}

static int own_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    return own_file(cell, 0, buf, outcome);
}

const struct back_end back_end_posix_shared = {
    .name = "posix-shared", .write = shared_write, .read = shared_read};
const struct back_end back_end_posix_own = {
    .name = "posix-fpp", .own_files = 1, .write = own_write, .read = own_read};
