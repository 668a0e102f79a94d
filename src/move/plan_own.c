/* See plan_own.h. */
#include "move/plan_own.h"

#include "move/plan_parts.h"

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

int plan_is_apart(uint64_t run, uint64_t pitch)
{
    return pitch >= run + WRITE_HOLE;
}

/* One run of each rank, or runs that fill stripes. */
static int may_whole(const struct io_hints *hints, const struct plan_place *place, uint64_t run,
                     const struct plan_ranks *ranks)
{
    unsigned candidates = 1u << IO_DIRECT | 1u << IO_ROTATE;
    if (hints->transport == IO_DIRECT)
        return ranks->size <= PLAN_CROWD;
    if (hints->transport != IO_AUTO || plan_nodes_wait(place, run, ranks))
        return 0;
    if (!plan_is_long(run))
        return ranks->n_nodes == 1 && ranks->size <= FEW_RANKS && !hints->writers;
    return ranks->size <= PLAN_CROWD &&
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
    return hints->transport == IO_AUTO && !hints->writers && ranks->size <= PLAN_CROWD;
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
    return bytes <= ONE_READER_MOST ? 1 : PLAN_NODE_WRITERS;
}
