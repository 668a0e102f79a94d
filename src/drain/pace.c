/* See pace.h. */
#include "drain/pace.h"

void pace_start(struct pace *pace, double cap, double slowdown, const struct watch_sums *sums,
                uint64_t now_ns)
{
    *pace = (struct pace){.cap = cap,
                          .slowdown = slowdown,
                          .careful = sums->sorts > 0,
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
    if (since < PACE_SETTLE_NS || pace->full <= 0)
        return;
    enum pace_verdict verdict = pace_judge(&pace->mark, sums, pace->slowdown);
    heard = heard && verdict != PACE_SLOW;
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
    if (pace->full <= 0 && pace->careful)
        pace->rate = speed / PACE_FIRST;
    pace->full += pace->full > 0 ? (speed - pace->full) / 8 : speed;
}
