/* The two trips of `put` round the ring: first the head of the image, from rank 0; then the blocks,
 * read by several, verified, decompressed and written while the next ones arrive. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <zstd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/io.h"
#include "stage/fault.h"
#include "stage/put.h"

#define PROGRESS_NS 100000000u

struct relay_job put_patience(const struct put *p)
{
    return (struct relay_job){.net = p->net,
                              .interrupted = &put_interrupted,
                              .timeout_ns = p->options->timeout_ns,
                              .grace_ns = PUT_GRACE_NS};
}

int put_read_image(struct put *p, void *to, size_t n, uint64_t offset)
{
    uint64_t start = brg_clock_ns();
    ssize_t got = fault_at(FAULT_READ, atomic_fetch_add(&p->n_read, 1))
                      ? -EIO
                      : brg_io_pread(p->image_fd, to, n, offset);
    atomic_fetch_add(&p->read_ns, brg_clock_ns() - start);
    if (got < 0) {
        struct brg_error err;
        return put_fail(p, (brg_error_system(&err, (int)got, "cannot read %s at offset %" PRIu64,
                                             p->options->image, offset),
                            &err));
    }
    atomic_fetch_add(&p->read_bytes, (uint64_t)got);
    if ((size_t)got < n)
        return put_fail_text(p, -EBADMSG,
                             "%s is truncated at offset %" PRIu64 ": copy it again, or "
                             "make the image again",
                             p->options->image, offset + (uint64_t)got);
    return 0;
}

static void abandon(void *context)
{
    put_undo(context);
}

static void run(struct put *p, struct relay_job *job)
{
    int error = 0;
    enum relay_end end = relay_run(job, &error);
    p->stuck = end == RELAY_STUCK;
    p->elsewhere = end == RELAY_ELSEWHERE;
    if (end == RELAY_FAILED && error == -EINTR)
        put_fail_text(p, error, "interrupted by signal %d", (int)put_interrupted);
    else if (end == RELAY_STUCK && error == -EINTR)
        put_fail_text(p, error, "interrupted by signal %d, and the other nodes did not answer",
                      (int)put_interrupted);
    else if (end == RELAY_STUCK && error == -ETIMEDOUT)
        put_fail_text(p, error, "no word from the neighbour nodes for %" PRIu64 " s",
                      p->options->timeout_ns / 1000000000u);
    else if (end == RELAY_STUCK || end == RELAY_FAILED)
        put_fail_text(p, error, "passing segments on failed: %s", strerror(-error));
}

/* ---- the head ---- */

static size_t head_piece(const struct put *p, uint32_t segment, uint64_t *offset)
{
    uint64_t end = put_header(p)->data_off;
    *offset = BRG_PAGE + (uint64_t)segment * p->options->segment_bytes;
    return end - *offset < p->options->segment_bytes ? end - *offset : p->options->segment_bytes;
}

static int head_read(void *context, uint32_t segment, void *buf, size_t *bytes)
{
    struct put *p = context;
    uint64_t offset;
    *bytes = head_piece(p, segment, &offset);
    memcpy(buf, p->head + offset, *bytes);
    return 0;
}

static int head_take(void *context, uint32_t worker, uint32_t segment, const void *buf,
                     size_t bytes)
{
    struct put *p = context;
    uint64_t offset;
    (void)worker;
    if (bytes != head_piece(p, segment, &offset))
        return -EPROTO;
    memcpy(p->head + offset, buf, bytes);
    return 0;
}

void put_move_head(struct put *p)
{
    uint64_t bytes = put_header(p)->data_off - BRG_PAGE, piece = p->options->segment_bytes;
    struct relay_job job = put_patience(p);
    plan_spread(&p->plan, p->net->size, 1, (uint32_t)((bytes + piece - 1) / piece));
    job.plan = &p->plan;
    job.n_workers = 1;
    job.n_slots = PLAN_TRANSIT_SLOTS + 1;
    job.slot_bytes = piece < bytes ? piece : bytes;
    job.context = p;
    job.read = head_read;
    job.take = p->net->rank ? head_take : NULL;
    job.abandon = abandon;
    run(p, &job);
}

/* ---- the blocks ---- */

/* Which blocks hold something that is staged: not all, when the image was cut to --memory. */
static void mark_wanted(const struct put *p, char *wanted)
{
    const struct brg_index *x = brg_head_index(p->head);
    uint64_t block = put_header(p)->block_bytes;
    for (uint32_t i = 0; i < x->n_entries; i++) {
        uint32_t c = brg_entries(x)[i].content;
        if (c == BRG_NONE || brg_contents(x)[c].size == 0)
            continue;
        uint64_t start = brg_contents(x)[c].raw_off, end = start + brg_contents(x)[c].size;
        memset(wanted + start / block, 1, (end - 1) / block - start / block + 1);
    }
}

/* Cuts each run of wanted blocks into segments. Returns the number of segments. */
static uint32_t cut_runs(struct put *p, const char *wanted, uint64_t *ends)
{
    const struct brg_block *blocks = brg_head_blocks(p->head);
    uint32_t total = put_header(p)->n_blocks, n = 0;
    for (uint32_t first = 0, stop; first < total; first = stop) {
        stop = first + 1;
        if (!wanted[first])
            continue;
        while (stop < total && wanted[stop])
            stop++;
        for (uint32_t b = first; b < stop; b++)
            ends[b - first] = blocks[b].off + blocks[b].bytes - blocks[first].off;
        uint32_t cuts = plan_cut(ends, stop - first, p->options->segment_bytes, p->firsts + n);
        for (uint32_t s = 0; s < cuts; s++) {
            p->stops[n + s] = s + 1 < cuts ? first + p->firsts[n + s + 1] : stop;
            p->firsts[n + s] += first;
        }
        n += cuts;
    }
    return n;
}

int put_plan_blocks(struct put *p)
{
    const struct brg_block *blocks = brg_head_blocks(p->head);
    size_t room = (size_t)put_header(p)->n_blocks + 1;
    uint64_t *ends = malloc(room * sizeof *ends);
    char *wanted = calloc(room, 1);
    p->firsts = malloc(room * sizeof *p->firsts);
    p->stops = malloc(room * sizeof *p->stops);
    if (!ends || !wanted || !p->firsts || !p->stops) {
        free(ends);
        free(wanted);
        return put_fail_text(p, -ENOMEM, "no memory for the list of %zu blocks", room);
    }
    mark_wanted(p, wanted);
    uint32_t n = cut_runs(p, wanted, ends);
    for (uint32_t s = 0; s < n; s++) {
        const struct brg_block *last = &blocks[p->stops[s] - 1];
        uint64_t bytes = last->off + last->bytes - blocks[p->firsts[s]].off;
        p->longest = bytes > p->longest ? bytes : p->longest;
    }
    free(ends);
    free(wanted);
    return plan_spread(&p->plan, p->net->size, p->options->readers, n);
}

static int block_read(void *context, uint32_t segment, void *buf, size_t *bytes)
{
    struct put *p = context;
    const struct brg_block *blocks = brg_head_blocks(p->head);
    const struct brg_block *first = &blocks[p->firsts[segment]];
    const struct brg_block *last = &blocks[p->stops[segment] - 1];
    *bytes = last->off + last->bytes - first->off;
    return put_read_image(p, buf, *bytes, first->off);
}

static void maybe_die(struct put *p)
{
    uint64_t n = atomic_fetch_add(&p->n_taken, 1);
    if (fault_at(FAULT_KILL, n))
        raise(SIGKILL);
    if (fault_at(FAULT_TERM, n))
        kill(getpid(), SIGTERM);
    if (fault_chosen.point == FAULT_SLOW)
        usleep((useconds_t)fault_chosen.n);
}

static int block_take(void *context, uint32_t worker, uint32_t segment, const void *buf,
                      size_t bytes)
{
    struct put *p = context;
    struct put_worker *w = &p->workers[worker];
    const struct brg_block *blocks = brg_head_blocks(p->head);
    uint64_t base = blocks[p->firsts[segment]].off;
    struct brg_error err;
    maybe_die(p);
    for (uint32_t b = p->firsts[segment]; b < p->stops[segment]; b++) {
        struct brg_block block = blocks[b];
        if (block.off - base + block.bytes > bytes)
            return put_fail_text(p, -EPROTO, "segment %u came with %zu bytes", segment, bytes);
        block.checksum ^= (uint64_t)fault_at(FAULT_BLOCK, b);
        uint64_t start = brg_clock_ns();
        int rc = brg_block_decode(&block, b, (const char *)buf + (block.off - base), w->raw,
                                  w->zstd, p->options->image, &err);
        uint64_t decoded = brg_clock_ns();
        if (!rc)
            rc = tree_take_block(&p->tree, b, w->raw, block.raw_bytes, &err);
        atomic_fetch_add(&p->decode_ns, decoded - start);
        atomic_fetch_add(&p->write_ns, brg_clock_ns() - decoded);
        if (rc)
            return put_fail(p, &err);
    }
    return 0;
}

/* "done total" in bytes of the image; never waits for who reads it. */
static void show_progress(void *context, uint32_t segments)
{
    struct put *p = context;
    uint64_t now = brg_clock_ns(), total = put_header(p)->total_bytes;
    struct pollfd out = {.fd = p->options->progress_fd, .events = POLLOUT};
    int last = segments == p->plan.n_segments;
    if (now - p->progress_ns < PROGRESS_NS && !last)
        return;
    p->progress_ns = now;
    if (poll(&out, 1, 0) != 1 || !(out.revents & POLLOUT))
        return;
    char line[64];
    uint64_t done = last ? total : total * segments / p->plan.n_segments;
    int n = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", done, total);
    if (write(out.fd, line, (size_t)n) < 0)
        return; /* nobody looks */
}

static int start_workers(struct put *p)
{
    for (uint32_t i = 0; i < p->n_workers; i++) {
        p->workers[i].raw = malloc(put_header(p)->block_bytes);
        p->workers[i].zstd = ZSTD_createDCtx();
        if (!p->workers[i].raw || !p->workers[i].zstd)
            return -ENOMEM;
    }
    return 0;
}

static int out_of_memory(void *context, uint32_t worker, uint32_t segment, const void *buf,
                         size_t bytes)
{
    (void)worker, (void)segment, (void)buf, (void)bytes;
    return put_fail_text(context, -ENOMEM, "no memory to decompress with");
}

void put_move_blocks(struct put *p)
{
    struct relay_job job = put_patience(p);
    job.plan = &p->plan;
    job.n_workers = p->n_workers;
    job.n_slots = PLAN_TRANSIT_SLOTS + p->n_workers + 1;
    job.slot_bytes = p->longest;
    job.context = p;
    job.read = block_read;
    job.abandon = abandon;
    if (!p->already)
        job.take = start_workers(p) ? out_of_memory : block_take;
    if (p->options->progress_fd >= 0 && p->net->rank == 0)
        job.progress = show_progress;
    run(p, &job);
    for (uint32_t i = 0; i < p->n_workers && !p->stuck; i++) {
        free(p->workers[i].raw);
        ZSTD_freeDCtx(p->workers[i].zstd);
    }
}
