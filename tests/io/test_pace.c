/* Yielding, in simulated time: a program that calls collectives all the time, a file system, and
 * how much the one suffers from the other. */
#include "drain/pace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../claim.h"

#define FULL 200e6 /* bytes a second */
#define PIECE (1u << 20)
#define BARRIER 0.001 /* seconds, alone */
#define MS 1000000ull

struct run {
    double harm;     /* a barrier takes 1 + harm times as long while the drain goes at full speed */
    double noise;    /* standard deviation of a barrier's logarithm */
    double drift;    /* factor on all barriers, whatever is written, from the first piece on */
    double cap;      /* bytes a second */
    double slowdown; /* allowed */
    int silent_from; /* seconds after which the program calls nothing more; 0: never */
    /* results */
    double speed, slower, late_speed;
};

static double normal(void)
{
    double u = (rand() + 1.0) / (RAND_MAX + 2.0), v = (rand() + 1.0) / (RAND_MAX + 2.0);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static double barrier(const struct run *run, double share)
{
    double factor = exp(normal() * run->noise - run->noise * run->noise / 2);
    return BARRIER * factor * (1 + run->harm * share);
}

/* Twenty seconds of draining, after a second without. */
static void simulate(struct run *run)
{
    static struct watch watch;
    struct pace pace;
    uint64_t key = watch_key(1, 42, 0), now = 1000 * MS, end = now + 20000 * MS, late = end / 2;
    double bytes = 0, late_bytes = 0, barriers = 0, seconds = 0, share = 0;
    srand(1);
    memset(&watch, 0, sizeof watch);
    for (int i = 0; i < 1000; i++)
        watch_note(&watch, key, barrier(run, 0), WATCH_ALONE);
    pace_start(&pace, run->cap, run->slowdown, &watch.sums, now);
    while (now < end) {
        /* one barrier, and the pieces that go meanwhile; the share of the time they take harms */
        double took = barrier(run, share) * (run->drift ? run->drift : 1);
        uint64_t then = now + (uint64_t)(took * 1e9);
        int calls = !run->silent_from || now < 1000 * MS * (unsigned)(run->silent_from + 1);
        if (calls) {
            int quiet = pace.last_ns && now > pace.last_ns + 100 * MS;
            watch_note(&watch, key, took, quiet ? WATCH_QUIET : WATCH_BUSY);
            barriers++;
            seconds += took;
        }
        double written = 0;
        for (;;) {
            pace_look(&pace, &watch.sums, 0, now);
            uint64_t next = pace_next_ns(&pace, 0), piece_ns = (uint64_t)(PIECE * 1e9 / FULL);
            if (next > then || pace.last_ns + piece_ns > then)
                break;
            uint64_t at = next > pace.last_ns + piece_ns ? next : pace.last_ns + piece_ns;
            if (at < now)
                at = now;
            pace_go(&pace, PIECE, 0, at);
            pace_gone(&pace, PIECE, piece_ns);
            written += PIECE;
            now = at;
        }
        bytes += written;
        if (now > late)
            late_bytes += written;
        share += (written / took / FULL - share) / 20; /* servers and caches remember a little */
        now = then;
    }
    run->speed = bytes / 20;
    run->late_speed = late_bytes / ((double)(end - late) / 1e9);
    run->slower = barriers > 0 ? seconds / barriers / BARRIER : 0;
}

static void without_harm_there_is_no_limit_however_noisy_the_calls(void)
{
    for (int i = 0; i < 4; i++) {
        struct run run = {.noise = 0.4 * i, .slowdown = 1.1};
        simulate(&run);
        CHECK(run.speed > 0.85 * FULL, "noise %g: %g bytes a second", run.noise, run.speed);
    }
}

static void harm_is_held_within_what_is_allowed(void)
{
    for (int i = 0; i < 9; i++) {
        struct run run = {
            .harm = (double[]){1, 5, 20}[i / 3], .noise = 0.3 * (i % 3), .slowdown = 1.25};
        simulate(&run);
        CHECK(run.slower < 1.35, "harm %g, noise %g: %g times", run.harm, run.noise, run.slower);
        /* and not by stopping: a third of what the allowance is worth */
        CHECK(run.speed > FULL * 0.25 / run.harm / 3, "harm %g, noise %g: %g bytes a second",
              run.harm, run.noise, run.speed);
    }
}

static void harm_below_what_is_allowed_costs_no_speed(void)
{
    struct run run = {.harm = 0.2, .noise = 0.5, .slowdown = 1.5};
    simulate(&run);
    CHECK(run.speed > 0.9 * FULL, "%g bytes a second", run.speed);
}

static void the_cap_holds_always(void)
{
    struct run run = {.cap = 30e6, .slowdown = 1.1};
    simulate(&run);
    CHECK(run.speed < 1.01 * 30e6 && run.speed > 0.95 * 30e6, "%g bytes a second", run.speed);
}

/* Or a file of one piece would go at once, whatever the cap. */
static void a_piece_is_of_an_eighth_of_a_second_under_the_cap(void)
{
    static const struct {
        double cap;
        size_t least, most;
    } of[] = {{1, PACE_SMALLEST, PACE_SMALLEST},
              {200e3, PACE_SMALLEST, 25000},
              {4 << 20, 512u << 10, 512u << 10},
              {30e6, PACE_LARGEST, PACE_LARGEST},
              {0, PACE_LARGEST, PACE_LARGEST}};
    static const struct watch_place places[] = {{0}, {.gap = 10}};
    struct watch_sums sums = {.sorts = 0};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        for (int gaps = 0; gaps < 2; gaps++) {
            struct pace pace;
            pace_start(&pace, of[i].cap, 1.1, &sums, 0);
            pace_gone(&pace, PACE_LARGEST, MS);
            size_t piece = pace_piece(&pace, &places[gaps]);
            CHECK(piece >= of[i].least && piece <= of[i].most, "cap %g: %zu", of[i].cap, piece);
        }
}

static void calls_that_are_slow_for_their_own_reasons_cost_little_speed(void)
{
    for (int i = 0; i < 3; i++) {
        struct run run = {.drift = (double[]){1.5, 3, 10}[i], .noise = 0.3, .slowdown = 1.1};
        simulate(&run);
        CHECK(run.late_speed > 0.5 * FULL, "drift %g: %g", run.drift, run.late_speed);
    }
}

static void a_drain_never_stops_whatever_the_calls_say(void)
{
    struct watch_sums sums = {.sorts = 1};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &sums, 0);
    pace_gone(&pace, FULL / 100, 10 * MS);
    for (uint64_t now = 100 * MS; now < 10000 * MS; now += 100 * MS) {
        sums.calls += 10;
        sums.x += 100;
        sums.b += 1;
        pace_look(&pace, &sums, 0, now);
    }
    CHECK(pace.rate >= FULL / PACE_LEAST, "%g bytes a second", pace.rate);
}

static void a_program_that_falls_silent_is_not_waited_for(void)
{
    struct run run = {.harm = 20, .slowdown = 1.1, .silent_from = 2};
    simulate(&run);
    CHECK(run.late_speed > 0.2 * FULL, "%g bytes a second", run.late_speed);
}

static void what_was_never_seen_without_writing_limits_nothing(void)
{
    static struct watch watch;
    for (int i = 0; i < 1000; i++)
        watch_note(&watch, watch_key(1, 1, 8), 1.0, WATCH_BUSY);
    CHECK(watch.sums.calls == 0, "%g calls", watch.sums.calls);
    CHECK(pace_judge(&(struct watch_sums){0}, &watch.sums, 1.1) == PACE_UNKNOWN, "no verdict");
}

static void sorts_of_calls_are_told_apart(void)
{
    static struct watch watch;
    for (int i = 0; i < 20; i++) {
        watch_note(&watch, watch_key(1, 7, 8), 0.001, WATCH_ALONE);
        watch_note(&watch, watch_key(1, 7, 1 << 20), 0.1, WATCH_ALONE);
        watch_note(&watch, watch_key(2, 7, 8), 0.01, WATCH_ALONE);
        watch_note(&watch, watch_key(1, 9, 8), 0.02, WATCH_ALONE);
    }
    watch_note(&watch, watch_key(1, 7, 1 << 20), 0.1, WATCH_BUSY);
    watch_note(&watch, watch_key(2, 7, 8), 0.01, WATCH_BUSY);
    watch_note(&watch, watch_key(1, 9, 8), 0.02, WATCH_BUSY);
    CHECK(fabs(watch.sums.x - watch.sums.b) < 1e-9, "%g and %g", watch.sums.x, watch.sums.b);
    /* More sorts than are remembered: nothing is known of the rest. */
    for (unsigned i = 0; i < 2 * WATCH_SORTS; i++)
        watch_note(&watch, watch_key(3, i, 8), 1.0, WATCH_ALONE);
}

static void one_call_out_of_many_decides_nothing(void)
{
    static struct watch watch;
    uint64_t key = watch_key(1, 1, 8);
    for (int i = 0; i < 20; i++)
        watch_note(&watch, key, 0.001, WATCH_ALONE);
    for (int i = 0; i < 12; i++)
        watch_note(&watch, key, i == 5 ? 10 : 0.001, WATCH_BUSY);
    enum pace_verdict verdict = pace_judge(&(struct watch_sums){0}, &watch.sums, 1.1);
    CHECK(verdict == PACE_UNKNOWN, "verdict %d", verdict);
}

static void a_waiting_program_meets_the_cap_only(void)
{
    struct watch_sums none = {0};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &none, 0);
    pace.full = FULL;
    pace.rate = FULL / 32;
    pace_go(&pace, PIECE, 0, MS);
    CHECK(pace_next_ns(&pace, 0) > 100 * MS, "%llu", (unsigned long long)pace_next_ns(&pace, 0));
    CHECK(pace_next_ns(&pace, 1) == 0, "%llu", (unsigned long long)pace_next_ns(&pace, 1));
}

static void what_another_rank_suffers_slows_this_one(void)
{
    struct watch_sums none = {0};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &none, 0);
    pace.full = FULL;
    pace_look(&pace, &none, 1, 100 * MS);
    CHECK(pace.rate == FULL / 2, "%g", pace.rate);
    pace_look(&pace, &none, 1, 101 * MS); /* too soon after the last change */
    CHECK(pace.rate == FULL / 2, "%g", pace.rate);
}

/* A program that computes `gap` seconds between barriers of a millisecond, and a store that takes
 * 25 MB/s: what part of its speed the pieces keep, and of barriers, how many met one. While it is
 * written, barriers are `slower` times as long, whatever goes when. */
static void drain_in_gaps(double gap, double slowdown, double slower, double *kept, double *met)
{
    static struct watch watch;
    struct pace pace;
    uint64_t key = watch_key(1, 7, 0);
    double now = 0, speed = 25e6, start = 0.002, busy_until = 0, bytes = 0;
    int calls = 0, hit = 0;
    memset(&watch, 0, sizeof watch);
    for (int i = 0; i < 20; i++) {
        watch_note(&watch, key, BARRIER, WATCH_ALONE);
        watch_note_gap(&watch, key, gap);
    }
    pace_start(&pace, 0, slowdown, &watch.sums, 0);
    for (; calls < 500; calls++) {
        double ends = now + gap, left = now + BARRIER + gap;
        struct watch_place place = {.gap = watch_gap(&watch, key)};
        for (double at = now > busy_until ? now : busy_until; at < left;) {
            place.inside = at >= ends;
            place.since = place.inside ? 0 : at - now;
            size_t piece = pace_piece(&pace, &place);
            uint64_t wait = pace_gap_ns(&pace, piece, &place, 0);
            uint64_t due = pace_next_ns(&pace, 0), at_ns = (uint64_t)(at * 1e9);
            if (wait || due > at_ns) {
                at += due > at_ns ? (double)(due - at_ns) * 1e-9 + 1e-9 : (double)wait * 1e-9;
                continue;
            }
            /* what a piece costs whatever its size; the rest varies by a fifth */
            double took = start + (double)piece / speed * (0.8 + 0.4 * rand() / RAND_MAX);
            pace_go(&pace, piece, 0, at_ns);
            pace_gone(&pace, piece, (uint64_t)(took * 1e9));
            bytes += (double)piece;
            at = busy_until = at + took;
        }
        hit += busy_until > ends;
        watch_note(&watch, key, BARRIER * slower, WATCH_BUSY);
        pace_look(&pace, &watch.sums, calls % 10 == 0, (uint64_t)(left * 1e9));
        watch_note_gap(&watch, key, gap);
        now = left;
    }
    *kept = bytes / now / speed;
    *met = (double)hit / calls;
}

static void where_the_program_computes_pieces_go_between_its_calls(void)
{
    static const double gaps[] = {0.005, 0.02, 0.1, 0.3}, least[] = {0.15, 0.5, 0.7, 0.75};
    for (int i = 0; i < 4; i++) {
        double kept, met;
        drain_in_gaps(gaps[i], 1.1, 1, &kept, &met);
        CHECK(met < 0.05, "gaps of %g s: %g of the calls met a piece", gaps[i], met);
        CHECK(kept > least[i], "gaps of %g s: %g of the speed", gaps[i], kept);
        drain_in_gaps(gaps[i], 1.1, 3, &kept, &met);
        CHECK(kept > least[i], "slow for other reasons, gaps of %g s: %g kept", gaps[i], kept);
        drain_in_gaps(gaps[i], 1.1, 12, &kept, &met);
        CHECK(kept < 0.1, "slow by far, gaps of %g s: %g kept", gaps[i], kept);
        drain_in_gaps(gaps[i], PACE_ANY, 1, &kept, &met);
        CHECK(met > 0.9 && kept > 0.95, "unlimited: %g met, %g kept", met, kept);
    }
}

static void where_gaps_are_used_nothing_begins_slowly(void)
{
    struct watch_sums known = {.sorts = 1};
    struct watch_place gap = {.gap = 0.02}, none = {0};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &known, 0);
    pace_gone(&pace, pace_piece(&pace, &gap), 4 * MS);
    CHECK(pace.rate == 0, "%g", pace.rate);
    pace_start(&pace, 0, 1.1, &known, 0);
    pace_gone(&pace, pace_piece(&pace, &none), 4 * MS);
    CHECK(pace.rate > 0, "%g", pace.rate);
}

static void a_gap_is_known_by_the_call_before_it_and_by_its_shorter_ones(void)
{
    static struct watch watch;
    uint64_t one = watch_key(1, 7, 0), two = watch_key(4, 7, 8);
    for (int i = 0; i < 40; i++) {
        CHECK(i >= (int)WATCH_LEARNT || watch_gap(&watch, one) == 0, "known after %d", i);
        watch_note_gap(&watch, one, i % 10 == 9 ? 0.03 : 0.02);
        watch_note_gap(&watch, two, 1e-6);
    }
    double gap = watch_gap(&watch, one);
    CHECK(gap > 0.0195 && gap < 0.022, "%g", gap);
    CHECK(watch_gap(&watch, two) < 2e-6, "%g", watch_gap(&watch, two));
}

static void a_gap_that_is_no_gap_holds_nothing_back(void)
{
    struct watch_sums none = {0};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &none, 0);
    for (int i = 1; i < 16; i++)
        pace_gone(&pace, (size_t)i << 16, ((uint64_t)i << 16) * 40);
    struct watch_place short_one = {.since = 0.0005, .gap = 0.001}, unknown = {0};
    struct watch_place inside = {.inside = 1, .gap = 0.02}, late = {.since = 0.019, .gap = 0.02};
    struct watch_place silent = {.since = 0.2, .gap = 0.02};
    CHECK(pace_gap_ns(&pace, 65536, &unknown, 0) == 0, "unknown");
    CHECK(pace_gap_ns(&pace, 65536, &short_one, 0) == 0, "short");
    CHECK(pace_gap_ns(&pace, 65536, &silent, 0) == 0, "it computes for longer");
    CHECK(pace_gap_ns(&pace, 65536, &inside, 1) == 0, "the program waits for it");
    CHECK(pace_gap_ns(&pace, 1 << 20, &inside, 0) == 0, "a piece that fits in no gap");
    CHECK(pace_gap_ns(&pace, 65536, &inside, 0) == PACE_POLL_NS, "in a call");
    CHECK(pace_gap_ns(&pace, 65536, &late, 0) == PACE_POLL_NS, "too late in the gap");
}

static void one_gap_that_was_interrupted_says_nothing(void)
{
    static struct watch watch;
    uint64_t key = watch_key(1, 7, 0);
    memset(&watch, 0, sizeof watch);
    for (int i = 0; i < 40; i++)
        watch_note_gap(&watch, key, i == 30 ? 1e-4 : 0.02);
    CHECK(watch_gap(&watch, key) > 0.0199, "%g", watch_gap(&watch, key));
    watch_note_gap(&watch, key, 0.01);
    CHECK(watch_gap(&watch, key) < 0.0101, "two of the last are shorter: %g",
          watch_gap(&watch, key));
    for (unsigned i = 0; i < WATCH_GAPS; i++)
        watch_note_gap(&watch, key, 0.03);
    CHECK(watch_gap(&watch, key) > 0.0299, "%g", watch_gap(&watch, key));
}

static void a_piece_is_at_most_twice_the_largest_that_was_tried(void)
{
    struct watch_sums none = {0};
    struct watch_place place = {.gap = 0.1, .long_gap = 0.1};
    struct pace pace;
    pace_start(&pace, 0, 1.1, &none, 0);
    size_t largest = 0;
    for (int i = 0; i < 8; i++) {
        size_t piece = pace_piece(&pace, &place);
        CHECK(!largest || piece <= 2 * largest, "%zu after %zu", piece, largest);
        largest = piece > largest ? piece : largest;
        pace_gone(&pace, piece, MS / 10); /* they cost nothing, as far as can be seen */
    }
    CHECK(largest == PACE_LARGEST, "%zu", largest);
}

/* A barrier and a reduction, one at once after the other, and then it computes. */
static void between_two_calls_that_follow_at_once_nothing_goes(void)
{
    static struct watch watch;
    struct watch_sums none = {0};
    struct pace pace;
    uint64_t first = watch_key(1, 7, 0), second = watch_key(4, 7, 8);
    memset(&watch, 0, sizeof watch);
    pace_start(&pace, 0, 1.1, &none, 0);
    for (int i = 0; i < 20; i++) {
        watch_note_gap(&watch, first, 1e-4);
        watch_note_gap(&watch, second, 0.02);
    }
    struct watch_place place = {
        .since = 5e-5, .gap = watch_gap(&watch, first), .long_gap = watch_long_gap(&watch)};
    size_t piece = pace_piece(&pace, &place);
    CHECK(piece == 4 * PACE_SMALLEST, "the first piece has %zu bytes", piece);
    pace_gone(&pace, piece, 4 * MS);
    piece = pace_piece(&pace, &place);
    CHECK(piece < PACE_LARGEST, "%zu bytes would fill more than a gap", piece);
    CHECK(pace_gap_ns(&pace, piece, &place, 0) == PACE_POLL_NS, "it goes between the calls");
    place.since = 0.1;
    CHECK(pace_gap_ns(&pace, piece, &place, 0) == 0, "no call comes: it waits for ever");
    for (unsigned i = 0; i < WATCH_NEAR; i++)
        watch_note_gap(&watch, first, 1e-4);
    place = (struct watch_place){.since = 5e-5, .gap = 1e-4, .long_gap = watch_long_gap(&watch)};
    CHECK(pace_gap_ns(&pace, piece, &place, 0) == 0, "it waits for gaps that are no more");
}

int main(void)
{
    between_two_calls_that_follow_at_once_nothing_goes();
    one_gap_that_was_interrupted_says_nothing();
    a_piece_is_at_most_twice_the_largest_that_was_tried();
    where_the_program_computes_pieces_go_between_its_calls();
    where_gaps_are_used_nothing_begins_slowly();
    a_gap_is_known_by_the_call_before_it_and_by_its_shorter_ones();
    a_gap_that_is_no_gap_holds_nothing_back();
    without_harm_there_is_no_limit_however_noisy_the_calls();
    harm_is_held_within_what_is_allowed();
    harm_below_what_is_allowed_costs_no_speed();
    the_cap_holds_always();
    a_piece_is_of_an_eighth_of_a_second_under_the_cap();
    calls_that_are_slow_for_their_own_reasons_cost_little_speed();
    a_drain_never_stops_whatever_the_calls_say();
    a_program_that_falls_silent_is_not_waited_for();
    what_was_never_seen_without_writing_limits_nothing();
    sorts_of_calls_are_told_apart();
    one_call_out_of_many_decides_nothing();
    a_waiting_program_meets_the_cap_only();
    what_another_rank_suffers_slows_this_one();
    return failures != 0;
}
