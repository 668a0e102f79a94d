/* See plan.h. */
#include "move/plan.h"

#include <stdio.h>

#include "move/bucket.h"

/* Four slots let a writer write one window, the next one fill, and another node's come in, with a
 * spare for unpacking. */
#define LEAST_SLOTS 4u
#define LEAST_WINDOW 4096u
#define SMALL_WINDOW (64u << 10)
/* A rank's part of a window that a small file's short runs are written through, on one node. With
 * half of it, four ranks on two processors waited for each other where pages were there already. */
#define NEAR_WINDOW (128u << 10)
/* In all: of 16 and 32 ranks it is faster than half of it, and than twice. */
#define NEAR_BLOCK (1u << 20)
/* With 32 ranks a job's first file took 25 ms instead of 30, but the later ones 7 instead of 6. */
#define NEAR_RANKS 16u
#define MOST_CLAIMS 4096u
/* One file's writes exclude each other in most file systems' clients, so a node needs one writer
 * to keep it busy and another to fetch the next window meanwhile. */
#define WRITERS_A_NODE 2u
/* Of so little in all, one is done before a second has caught up: 4 MiB in records of 1 KiB took 2,
 * 4 and 8 ranks on two processors 0.8, 0.7 and 0.6 of the time that two writers took. */
#define ONE_WRITER_MOST (UINT64_C(16) << 20)
/* From here on a write from a rank's own memory costs less than a copy into shared memory. */
#define LONG_RUN (64u << 10)
/* More clients than this at once are a burden to a file's servers. */
#define CROWD 256u
/* Of so many, a write each costs no more than meeting twice more, however short. */
#define FEW_RANKS 16u
/* Several runs of a rank: up to so many of few ranks; or so far apart that windows would be mostly
 * holes, which writers leave out as well (move_sieve.c) and readers would read. */
#define FEW_WRITES 2u
#define FEW_READS 16u
#define FEW_READ_BYTES (64u << 10) /* that nobody asked for */
#define FEW_RUNS 4u                /* of a stretch: more are written as one from a window */
#define WRITE_HOLE 4096u
#define WRITE_RUN (16u << 10) /* costs less to write than to copy */
#define READ_PITCH 4096u
#define READ_PITCH_DISK (16u << 10)
#define READ_PITCH_UNKNOWN (64u << 10)
/* Of so many bytes of a rank it is worth a look whether they come from a disk. */
#define ONE_READER (256u << 10)
/* Of more in all, two share the copying; of much more, all read their own as soon. */
#define ONE_READER_MOST (UINT64_C(16) << 20)
#define READERS_MOST (UINT64_C(64) << 20)
/* With more nodes, all of them sending to one at a time is what brigade avoids. */
#define MANY_NODES 32u

/* A counter and a task (32 bits each), a bit for doing it again, and three bits of every node. */
uint64_t plan_claims_bytes(uint32_t claims, uint32_t n_nodes)
{
    return (uint64_t)claims * 8 + claims / 8 + (uint64_t)n_nodes * (claims / 8) * 3;
}

uint32_t plan_claims(uint64_t room_bytes, uint32_t n_nodes)
{
    uint32_t claims = MOST_CLAIMS;
    while (claims > PLAN_MIN_CLAIMS && plan_claims_bytes(claims, n_nodes) > room_bytes / 16)
        claims /= 2;
    return claims;
}

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t greater(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t window_bytes(const struct io_plan *plan, const struct plan_ranks *ranks)
{
    uint64_t taken =
        plan_claims_bytes(plan_claims(ranks->room_bytes, ranks->n_nodes), ranks->n_nodes) +
        ranks->size * sizeof(uint32_t) + 2 * 4096; /* turns; the board, and a rounded end */
    uint64_t room = ranks->room_bytes > taken ? ranks->room_bytes - taken : 0;
    uint64_t most = LEAST_WINDOW, bytes = SMALL_WINDOW;
    while (bucket_room((uint32_t)most * 2) * LEAST_SLOTS <= room && most < UINT32_C(1) << 30)
        most *= 2;
    uint64_t least = plan->stripe_bytes;
    uint64_t near = lesser((uint64_t)NEAR_WINDOW * ranks->size, NEAR_BLOCK);
    if (plan->is_near && near < least)
        least = near;
    while (bytes < least && bytes < plan->high - plan->low)
        bytes *= 2;
    return bytes < most ? bytes : most;
}

int plan_is_long(uint64_t run)
{
    return run >= LONG_RUN;
}

int plan_is_apart(uint64_t run, uint64_t pitch)
{
    return pitch >= run + WRITE_HOLE;
}

void plan_why(char text[PLAN_WHY], const struct io_hints *hints, const char *by_rule,
              const struct experience *past)
{
    char measured[128] = "";
    if (hints->transport == IO_AUTO && past)
        experience_tell(past, measured, sizeof measured);
    if (hints->transport != IO_AUTO)
        by_rule = "asked for";
    snprintf(text, PLAN_WHY, "%s%s", measured[0] ? "measured before, " : by_rule, measured);
}

/* Whether nodes would wait for each other if every rank wrote such runs by itself. */
static int nodes_wait(const struct plan_place *place, uint64_t run, const struct plan_ranks *ranks)
{
    return ranks->n_nodes > 1 && run < place->lock_bytes;
}

static void choose(struct io_plan *plan, const struct io_hints *hints,
                   const struct plan_place *place, const struct io_extent *extent,
                   const struct plan_ranks *ranks)
{
    const char *by_rule;
    enum io_transport to_writers = ranks->n_nodes > MANY_NODES ? IO_BRIGADE : IO_SIMPLE;
    unsigned candidates = 1u << IO_DIRECT | 1u << IO_ROTATE;
    char why[PLAN_WHY];
    if (extent->readers) {
        candidates = 1u << IO_SIMPLE;
        plan->transport = IO_SIMPLE;
        by_rule = "it lies on a disk, which few should read";
    } else if (!plan_is_long(extent->run)) {
        candidates = 1u << IO_SIMPLE | (ranks->n_nodes > 1 ? 1u << IO_BRIGADE : 0);
        plan->transport = to_writers;
        by_rule = ranks->n_nodes > MANY_NODES ? "runs are short, and there are many nodes"
                                              : "runs are short";
    } else if (nodes_wait(place, extent->run, ranks)) {
        candidates = 1u << IO_DIRECT | 1u << IO_SIMPLE | 1u << IO_BRIGADE;
        plan->transport = to_writers;
        by_rule = "nodes would wait for each other's writes";
    } else if (ranks->size > CROWD) {
        plan->transport = IO_ROTATE;
        by_rule = "runs are long, and there are many ranks";
    } else {
        plan->transport = IO_DIRECT;
        by_rule = "runs are long, and there are few ranks";
    }
    if (hints->transport != IO_AUTO)
        plan->transport = hints->transport;
    else if (ranks->past)
        plan->transport = experience_choose(ranks->past, plan->transport, candidates);
    plan_why(why, hints, by_rule, ranks->past);
    snprintf(plan->reason, sizeof plan->reason, "%s: mean run %llu bytes, %u ranks, %u nodes", why,
             (unsigned long long)extent->run, ranks->size, ranks->n_nodes);
}

/* One run of each rank, or runs that fill stripes. */
static int may_whole(const struct io_hints *hints, const struct plan_place *place, uint64_t run,
                     const struct plan_ranks *ranks)
{
    unsigned candidates = 1u << IO_DIRECT | 1u << IO_ROTATE;
    if (hints->transport == IO_DIRECT)
        return ranks->size <= CROWD;
    if (hints->transport != IO_AUTO || nodes_wait(place, run, ranks))
        return 0;
    if (!plan_is_long(run))
        return ranks->n_nodes == 1 && ranks->size <= FEW_RANKS && !hints->writers;
    return ranks->size <= CROWD &&
           (!ranks->past || experience_choose(ranks->past, IO_DIRECT, candidates) == IO_DIRECT);
}

/* Of stretches of any rank, one every `pitch` bytes, that are written: whether the holes between
 * them are too large to be filled. A page that is in memory is written to as it is. */
static int has_large_holes(const struct plan_share *s, uint64_t pitch)
{
    int in_pages = s->where == STORE_IN_MEMORY && pitch >= WRITE_HOLE;
    return plan_is_apart(s->spread.length, pitch) || (in_pages && s->spread.length <= pitch / 4);
}

/* Several runs, by `pitch` from one stretch of any rank to the next, should all lie between each
 * other's. A rank that reads reads what lies between the runs of a stretch as well; one that writes
 * writes run by run. Figures: docs/explanation/onesided.md, "Far apart". */
static int may_apart(const struct plan_share *s, uint64_t pitch, const struct plan_ranks *ranks)
{
    int few = ranks->n_nodes == 1 && ranks->size <= FEW_RANKS;
    uint64_t bytes = s->spread.run * s->spread.runs / s->spread.stretches;
    uint64_t holes = s->spread.length > bytes ? s->spread.length - bytes : 0;
    if (s->writes)
        return ranks->n_nodes == 1 &&
               ((few && s->spread.runs <= FEW_WRITES) || s->spread.run >= WRITE_RUN ||
                (s->spread.runs <= s->spread.stretches * FEW_RUNS && has_large_holes(s, pitch)));
    if (s->where == STORE_IN_MEMORY)
        return (few && s->spread.stretches <= FEW_READS &&
                s->spread.stretches * holes <= FEW_READ_BYTES) ||
               pitch >= READ_PITCH + holes;
    return pitch >= (s->where == STORE_ON_DISK ? READ_PITCH_DISK : READ_PITCH_UNKNOWN) + holes;
}

static int may_leave_windows(const struct io_hints *hints, const struct plan_ranks *ranks)
{
    return hints->transport == IO_AUTO && !hints->writers && ranks->size <= CROWD;
}

/* Whether that can be: it depends on where the bytes are. */
static int may_read_in_one(const struct io_hints *hints, const struct plan_place *place,
                           const struct plan_share *share, const struct plan_ranks *ranks)
{
    return place->one_stream && !place->writes && !share->writes && ranks->n_nodes == 1 &&
           ranks->size > 1 && may_leave_windows(hints, ranks);
}

int plan_may_look(const struct io_hints *hints, const struct plan_place *place,
                  const struct plan_share *share, const struct plan_ranks *ranks)
{
    struct plan_share best = *share;
    best.where = STORE_IN_MEMORY;
    if (ranks->n_nodes > 1 || !may_leave_windows(hints, ranks))
        return 0;
    if (share->spread.run * share->spread.runs >= ONE_READER &&
        may_read_in_one(hints, place, share, ranks))
        return 1;
    return share->spread.runs > 1 && may_apart(&best, share->spread.pitch, ranks);
}

int plan_may_early(const struct io_hints *hints, const struct plan_place *place,
                   const struct plan_share *share, const struct plan_ranks *ranks)
{
    if (share->where == STORE_ON_DISK && may_read_in_one(hints, place, share, ranks))
        return 0;
    if (share->spread.runs <= 1 ||
        (plan_is_long(share->spread.run) && share->spread.run >= place->stripe_bytes))
        return may_whole(hints, place, share->spread.run, ranks);
    if (!share->writes && share->where == STORE_ON_DISK)
        return 0;
    return may_leave_windows(hints, ranks) &&
           may_apart(share, share->spread.pitch / ranks->size, ranks);
}

int plan_is_scattered(const struct io_hints *hints, const struct io_extent *extent,
                      const struct plan_share *share, const struct plan_ranks *ranks)
{
    if (share->spread.runs <= 1 || extent->low >= extent->high || !may_leave_windows(hints, ranks))
        return 0;
    uint64_t pitch = (extent->high - extent->low) / share->spread.stretches / ranks->size;
    return may_apart(share, pitch < share->spread.pitch ? pitch : share->spread.pitch, ranks);
}

/* Measured with runs of 16 KiB to 1 MiB of 4 and 16 ranks: where all of a file is read, asking for
 * what comes next takes up to 1.7 times as long (it comes in small pages); where half of it is, not
 * to ask takes 1.4 times. */
int plan_reads_on(const struct io_extent *extent, const struct plan_share *s,
                  const struct plan_ranks *ranks)
{
    uint64_t wanted = s->spread.run * s->spread.runs * ranks->size;
    return s->where == STORE_ON_DISK && wanted >= (extent->high - extent->low) / 4 * 3;
}

uint32_t plan_readers(const struct io_hints *hints, const struct plan_place *place,
                      const struct io_extent *extent, const struct plan_share *share,
                      const struct plan_ranks *ranks)
{
    uint64_t bytes = extent->high - extent->low;
    if (bytes > READERS_MOST || !may_read_in_one(hints, place, share, ranks) ||
        !plan_reads_on(extent, share, ranks))
        return 0;
    return bytes <= ONE_READER_MOST ? 1 : WRITERS_A_NODE;
}

static int is_short_and_near(const struct io_extent *extent, const struct plan_ranks *ranks)
{
    return ranks->n_nodes == 1 && !plan_is_long(extent->run);
}

/* As asked for, or so many a node. */
static uint64_t wish_writers(const struct io_hints *hints, const struct plan_place *place,
                             const struct io_extent *extent, const struct plan_ranks *ranks)
{
    int is_small = place->writes && extent->high - extent->low <= ONE_WRITER_MOST;
    if (hints->writers)
        return hints->writers;
    if (extent->readers)
        return extent->readers;
    if (is_small && is_short_and_near(extent, ranks))
        return 1;
    return (uint64_t)ranks->n_nodes * WRITERS_A_NODE;
}

static uint32_t count_writers(uint64_t n, const struct plan_ranks *ranks)
{
    uint32_t most = plan_claims(ranks->room_bytes, ranks->n_nodes);
    if (most > PLAN_MAX_WRITERS)
        most = PLAN_MAX_WRITERS;
    if (n > most)
        n = most;
    return n > ranks->size ? ranks->size : (uint32_t)n;
}

static void begin(struct io_plan *plan, const struct io_hints *hints,
                  const struct plan_place *place, const struct io_extent *extent,
                  const struct plan_ranks *ranks)
{
    plan->low = extent->low;
    plan->high = extent->high;
    plan->grain = extent->grain;
    plan->stripe_bytes = place->stripe_bytes;
    plan->lock_bytes = ranks->n_nodes > 1 && !hints->writers ? place->lock_bytes : 0;
    plan->is_near = 0;
    plan->n_writers = 0;
    plan->first[0] = 0;
    choose(plan, hints, place, extent, ranks);
}

/* Where a domain of a call is all that one node may write at a time, later calls that reach it have
 * the same writer, as long as nodes suffice: no other node waits for it. */
static uint64_t seat(const struct io_plan *plan, uint64_t domain, uint64_t n, uint64_t first_unit,
                     uint64_t units, const struct plan_ranks *ranks)
{
    if (plan->lock_bytes && n == units && n <= ranks->n_nodes)
        return (first_unit + domain) % ranks->n_nodes * ranks->size / ranks->n_nodes;
    return domain * ranks->size / n;
}

/* Aligned ones of so many bytes that the extent reaches. */
static uint64_t stretches(const struct io_plan *plan, uint64_t bytes)
{
    return (plan->high - 1) / bytes + 1 - plan->low / bytes;
}

/* Among n writers, or as many as there are stripes, or stretches that nodes write in turns. */
static void split(struct io_plan *plan, uint64_t n, const struct plan_ranks *ranks)
{
    uint64_t window = plan->window_bytes;
    uint64_t unit = greater(greater(plan->stripe_bytes, plan->lock_bytes), window);
    uint64_t first = plan->low / unit, units = stretches(plan, unit);
    if (n > units)
        n = units;
    plan->n_writers = (uint32_t)n;
    for (uint32_t d = 0; d < n; d++) {
        uint64_t rank = seat(plan, d, n, first, units, ranks);
        plan->writers[d] = ranks->order ? ranks->order[rank] : (uint32_t)rank;
        plan->first[d] = (first + units * d / n) * (unit / window);
    }
    plan->first[n] = (first + units) * (unit / window);
}

/* Short runs of ranks that reach each other's memory: windows that stay in a processor's cache, and
 * take few pages that nobody has touched, cost less than the meetings that there are more of. */
#define NEAR_SHARE (64u << 10) /* a rank's part of a window */

void plan_make(struct io_plan *plan, const struct io_hints *hints, const struct plan_place *place,
               const struct io_extent *extent, const struct plan_ranks *ranks)
{
    begin(plan, hints, place, extent, ranks);
    if (extent->low >= extent->high)
        return;
    plan->is_near = place->writes && ranks->size <= NEAR_RANKS &&
                    is_short_and_near(extent, ranks) &&
                    extent->high - extent->low <= greater(ranks->room_bytes, ONE_WRITER_MOST);
    plan->window_bytes = window_bytes(plan, ranks);
    split(plan, count_writers(wish_writers(hints, place, extent, ranks), ranks), ranks);
}

/* Two windows of a writer take turns: with fewer than these, it has nothing to write while the next
 * one fills. */
#define LEAST_TURNS 4u
#define LEAST_BLOCK (1u << 20)

static uint64_t most_block(const struct io_extent *extent, const struct plan_ranks *ranks)
{
    uint64_t near = lesser((uint64_t)NEAR_SHARE * ranks->size, NEAR_BLOCK);
    return is_short_and_near(extent, ranks) ? lesser(near, ranks->room_bytes) : ranks->room_bytes;
}

void plan_blocks(struct io_plan *plan, const struct io_hints *hints, const struct plan_place *place,
                 const struct io_extent *extent, const struct plan_ranks *ranks)
{
    begin(plan, hints, place, extent, ranks);
    if (extent->low >= extent->high)
        return;
    uint64_t n = wish_writers(hints, place, extent, ranks);
    if (n > ranks->size)
        n = ranks->size;
    if (n > PLAN_MAX_WRITERS)
        n = PLAN_MAX_WRITERS;
    if (plan->lock_bytes && n > stretches(plan, plan->lock_bytes))
        n = stretches(plan, plan->lock_bytes);
    uint64_t most = most_block(extent, ranks);
    plan->window_bytes = LEAST_WINDOW;
    while (plan->window_bytes * 2 <= most &&
           (plan->window_bytes < LEAST_BLOCK ||
            plan->window_bytes * 2 * LEAST_TURNS * n <= extent->high - extent->low))
        plan->window_bytes *= 2;
    split(plan, n, ranks);
}
