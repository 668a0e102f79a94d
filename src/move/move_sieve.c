/* Many short runs of a window with small holes between them are written as one: the file's own
 * bytes are read into the holes first. One system call each would be slow everywhere, and on a
 * network file system a journey each.
 *
 * Nobody else writes to the holes meanwhile: in one call a window has one writer, and of a file in
 * place, which others may have open as well, the stretch is held. */
#include <stdlib.h>
#include <string.h>

#include "move/move_parts.h"

#define HOLE_BYTES 4096u /* a larger one stays as it is: the file may have none of its blocks */
#define FEW_RUNS 4u      /* are written one by one */
#define READ_BYTES (128u << 10)

/* Runs with small holes between them: [at, end) of the image. */
struct stretch {
    uint32_t at, end, runs;
};

static int next_stretch(const struct bucket *b, uint32_t from, struct stretch *s)
{
    uint32_t at, bytes;
    *s = (struct stretch){0};
    while (bucket_run(b, from, &at, &bytes) && (!s->runs || at - s->end <= HOLE_BYTES)) {
        if (!s->runs++)
            s->at = at;
        s->end = from = at + bytes;
    }
    return s->runs != 0;
}

/* What the file has of [from, end) goes to where the bucket has no bytes. */
static int fill_holes(struct mover *m, struct bucket *b, uint32_t from, uint32_t end, char *there,
                      struct brg_error *err)
{
    int rc = 0;
    while (!rc && from < end) {
        uint32_t n = end - from < READ_BYTES ? end - from : READ_BYTES;
        uint32_t hole = from, until = from + n, at, bytes;
        rc = mover_read_raw(m, there, n, b->start + from, err);
        while (!rc && hole < until) {
            int more = bucket_run(b, hole, &at, &bytes);
            uint32_t next = more && at < until ? at : until;
            memcpy(b->image + hole, there + (hole - from), next - hole);
            hole = next < until ? at + bytes : until;
        }
        from = until;
    }
    return rc;
}

static int write_runs(struct mover *m, struct bucket *b, const struct stretch *s,
                      struct brg_error *err)
{
    uint32_t bytes;
    int rc = 0;
    for (uint32_t at = s->at; !rc && at < s->end && bucket_run(b, at, &at, &bytes); at += bytes)
        rc = mover_write(m, b->image + at, bytes, b->start + at, err);
    return rc;
}

int sieve_write(struct mover *m, struct bucket *b, struct brg_error *err)
{
    struct stretch s;
    char *there = NULL;
    int rc = 0, can_read = store_reads_raw(m->call->store);
    for (uint32_t from = 0; !rc && next_stretch(b, from, &s); from = s.end) {
        int sieved = can_read && s.runs > FEW_RUNS;
        if (sieved && !there)
            sieved = (there = malloc(READ_BYTES)) != NULL;
        if (!sieved) {
            rc = write_runs(m, b, &s, err);
            continue;
        }
        if (mover_hold(m, s.end - s.at, b->start + s.at)) {
            rc = write_runs(m, b, &s, err);
            continue;
        }
        rc = fill_holes(m, b, s.at, s.end, there, err);
        rc = rc ? rc : mover_write(m, b->image + s.at, s.end - s.at, b->start + s.at, err);
        mover_release(m, s.end - s.at, b->start + s.at);
    }
    free(there);
    return rc;
}
