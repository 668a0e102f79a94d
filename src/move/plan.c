/* See plan.h. */
#include "move/plan.h"

#include <stdio.h>

#include "move/bucket.h"
#include "move/plan_parts.h"

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
/* Of so little in all, one is done before a second has caught up: 4 MiB in records of 1 KiB took 2,
 * 4 and 8 ranks on two processors 0.8, 0.7 and 0.6 of the time that two writers took. */
#define ONE_WRITER_MOST (UINT64_C(16) << 20)
/* From here on a write from a rank's own memory costs less than a copy into shared memory. */
#define LONG_RUN (64u << 10)
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
    } else if (plan_nodes_wait(place, extent->run, ranks)) {
        candidates = 1u << IO_DIRECT | 1u << IO_SIMPLE | 1u << IO_BRIGADE;
        plan->transport = to_writers;
        by_rule = "nodes would wait for each other's writes";
    } else if (ranks->size > PLAN_CROWD) {
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
    return (uint64_t)ranks->n_nodes * PLAN_NODE_WRITERS;
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
