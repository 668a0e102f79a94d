/* See pace.h. */
#include "drain/pace.h"

void pace_start(struct pace *pace, double cap, double slowdown, const struct watch_sums *sums,
                uint64_t now_ns)
{
    *pace = (struct pace){.cap = cap,
                          .slowdown = slowdown,
                          .careful = sums->sorts > 0 && slowdown < PACE_ANY,
                          .mark = *sums,
                          .changed_ns = now_ns};
}

/* Tests the mean of x - slowdown * b, without square roots; what stays unclear goes by its sign. */
enum pace_verdict pace_judge(const struct watch_sums *before, const struct watch_sums *after,
                             double slowdown)
{
    double n = after->calls - before->calls;
    if (n < PACE_FEWEST)
        return PACE_UNKNOWN;
    double excess = (after->x - before->x) - slowdown * (after->b - before->b);
    double squares = (after->xx - before->xx) - 2 * slowdown * (after->xb - before->xb) +
                     slowdown * slowdown * (after->bb - before->bb);
    double variance = squares / n - excess / n * (excess / n);
    double clear = PACE_SIGMAS * PACE_SIGMAS * variance * n;
    if (n < PACE_MOST && excess * excess <= clear)
        return PACE_UNKNOWN;
    return excess > 0 ? PACE_SLOW : PACE_FINE;
}

static void slower(struct pace *pace, int heard)
{
    double least = pace->full / (heard ? PACE_LEAST_HEARD : PACE_LEAST);
    if (!heard && least > PACE_LEAST_RATE)
        least = PACE_LEAST_RATE;
    if (pace->rate > 0 && pace->rate <= least)
        return;
    pace->harmed = pace->rate > 0 ? pace->rate : pace->full;
    pace->rate = pace->harmed / 2 > least ? pace->harmed / 2 : least;
}

static void faster(struct pace *pace)
{
    if (pace->rate <= 0)
        return;
    double step = pace->rate / 16;
    double way = pace->harmed > 0 ? (pace->harmed - pace->rate) / 2 : pace->rate;
    pace->rate += way > step ? way : step;
    if (pace->rate > pace->harmed * PACE_BEYOND)
        pace->harmed = 0;
    if (pace->rate >= pace->full)
        pace->rate = 0;
}

void pace_look(struct pace *pace, const struct watch_sums *sums, int heard, uint64_t now_ns)
{
    uint64_t since = now_ns - pace->changed_ns;
    if (since < PACE_SETTLE_NS || pace->full <= 0 || pace->slowdown >= PACE_ANY)
        return;
    double allowed = pace->slowdown * (pace->gaps ? PACE_GAP_TRUST : 1);
    enum pace_verdict verdict = pace_judge(&pace->mark, sums, allowed);
    heard = heard && verdict != PACE_SLOW && !pace->gaps;
    if (heard)
        verdict = PACE_SLOW;
    else if (sums->calls <= pace->mark.calls && since >= PACE_SILENCE_NS) {
        pace->harmed = pace->rate * 8;
        verdict = PACE_FINE;
    }
    if (verdict == PACE_UNKNOWN)
        return;
    if (verdict == PACE_SLOW)
        slower(pace, heard);
    else
        faster(pace);
    pace->mark = *sums;
    pace->changed_ns = now_ns;
}

static double limit(const struct pace *pace, int hurry)
{
    double rate = hurry ? 0 : pace->rate;
    return pace->cap > 0 && (rate <= 0 || rate > pace->cap) ? pace->cap : rate;
}

uint64_t pace_next_ns(const struct pace *pace, int hurry)
{
    double rate = limit(pace, hurry);
    if (rate <= 0)
        return 0;
    return pace->last_ns + (uint64_t)((double)pace->last_bytes * 1e9 / rate);
}

/* Seconds that a piece is expected to take: a line through those of the last pieces, whose start is
 * what each costs whatever its size; where all had one size, in proportion. */
static double expected(const struct pace *pace, size_t bytes)
{
    if (pace->n <= 0)
        return 0;
    double mib = (double)bytes / (1 << 20), x = pace->x / pace->n, y = pace->y / pace->n;
    double spread = pace->xx / pace->n - x * x;
    double slope = spread > x * x / 400 ? (pace->xy / pace->n - x * y) / spread : y / x;
    if (slope < 0 || y < slope * x)
        slope = slope < 0 ? 0 : y / x;
    return y + slope * (mib - x);
}

/* With what it may take longer. */
static double takes(const struct pace *pace, size_t bytes)
{
    return expected(pace, bytes) + PACE_MISSES * pace->miss;
}

static void learn(struct pace *pace, size_t bytes, double seconds)
{
    double mib = (double)bytes / (1 << 20), missed = seconds - expected(pace, bytes);
    pace->tried = bytes > pace->tried ? bytes : pace->tried;
    pace->miss += pace->n > 0 ? ((missed < 0 ? -missed : missed) - pace->miss) / 8 : seconds / 8;
    double kept = 15.0 / 16;
    pace->n = pace->n * kept + 1;
    pace->x = pace->x * kept + mib;
    pace->y = pace->y * kept + seconds;
    pace->xx = pace->xx * kept + mib * mib;
    pace->xy = pace->xy * kept + mib * seconds;
}

/* Seconds of the gap that the program is in, or of the one that comes, if this one is short. */
static double gap_of(const struct watch_place *place)
{
    return place->gap >= WATCH_LONG ? place->gap : place->long_gap;
}

static int uses_gaps(const struct pace *pace, const struct watch_place *place)
{
    return gap_of(place) >= WATCH_LONG && pace->slowdown < PACE_ANY;
}

/* Whether it is in a gap that is waited for. */
static int in_gap(const struct watch_place *place)
{
    return !place->inside && place->gap >= WATCH_LONG;
}

/* A cap holds for files that are written in a second or less, too: the first piece goes at once. */
static size_t largest(const struct pace *pace)
{
    double most = pace->cap / PACE_PIECES_S;
    if (pace->cap <= 0 || most >= PACE_LARGEST)
        return PACE_LARGEST;
    return most < PACE_SMALLEST ? PACE_SMALLEST : (size_t)most / PACE_SMALLEST * PACE_SMALLEST;
}

size_t pace_piece(struct pace *pace, const struct watch_place *place)
{
    size_t most = largest(pace), first = PACE_SMALLEST * 4;
    pace->gaps = uses_gaps(pace, place);
    if (!pace->gaps)
        return most;
    if (pace->n <= 0)
        return first < most ? first : most;
    double whole = gap_of(place) * PACE_GAP_USED, left = whole - place->since;
    if (!in_gap(place) || left < takes(pace, PACE_SMALLEST))
        left = whole; /* it waits for the next one */
    size_t bytes = pace->tried < most / 2 ? pace->tried * 2 : most;
    while (bytes > PACE_SMALLEST && takes(pace, bytes) > left)
        bytes -= PACE_SMALLEST;
    return bytes;
}

uint64_t pace_gap_ns(const struct pace *pace, size_t bytes, const struct watch_place *place,
                     int hurry)
{
    double whole = gap_of(place) * PACE_GAP_USED, needed = takes(pace, bytes);
    if (hurry || !uses_gaps(pace, place) || needed > whole)
        return 0;
    if (!place->inside && place->since > gap_of(place) * PACE_GAP_BROKEN)
        return 0;
    return !in_gap(place) || place->since + needed > whole ? PACE_POLL_NS : 0;
}

void pace_go(struct pace *pace, size_t bytes, int hurry, uint64_t now_ns)
{
    /* A piece that goes a little late is not held against the next. */
    uint64_t due = pace_next_ns(pace, hurry);
    pace->last_ns = due && now_ns - due < PACE_SETTLE_NS ? due : now_ns;
    pace->last_bytes = bytes;
}

void pace_gone(struct pace *pace, size_t bytes, uint64_t took_ns)
{
    double speed = (double)bytes * 1e9 / (double)(took_ns ? took_ns : 1);
    learn(pace, bytes, (double)took_ns * 1e-9);
    if (pace->full <= 0 && pace->careful && !pace->gaps)
        pace->rate = speed / PACE_FIRST;
    pace->full += pace->full > 0 ? (speed - pace->full) / 8 : speed;
}
