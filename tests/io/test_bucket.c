/* A bucket holds exactly what was put, whoever puts at the same time. */
#include "claim.h"
#include "move/bucket.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define BYTES 4096u
#define START (UINT64_C(7) << 40)
#define THREADS 4u

static struct bucket bucket;
static char *memory;
static uint32_t grain;

static uint32_t cut(uint32_t bytes)
{
    return bytes >> grain << grain;
}

static void prepare(int owned)
{
    free(memory);
    size_t room = owned ? bucket_owned_room(BYTES, grain) : bucket_room(BYTES);
    memory = aligned_alloc(64, (room + 63) / 64 * 64);
    memset(memory, 0xa5, room);
    bucket_lay(&bucket, memory, BYTES, grain, owned);
    bucket_clear(&bucket, START);
}

/* Compares runs and bytes with a list of bytes, -1 where nothing was put. */
static void check_is(const int *want, const char *what)
{
    uint32_t from = 0, at, bytes, i = 0;
    while (bucket_run(&bucket, from, &at, &bytes)) {
        for (; i < at; i++)
            CHECK(want[i] < 0, "%s: byte %u is missing", what, i);
        for (; i < at + bytes; i++)
            CHECK(want[i] == (unsigned char)bucket.image[i], "%s: byte %u is %d, not %d", what, i,
                  (unsigned char)bucket.image[i], want[i]);
        CHECK(bytes > 0 && (i == BYTES || want[i] < 0), "%s: the run at %u ends early", what, at);
        from = at + bytes;
        if (failures)
            return;
    }
    for (; i < BYTES; i++)
        CHECK(want[i] < 0, "%s: byte %u is missing at the end", what, i);
}

static void what_was_put_comes_out_as_runs(void)
{
    int want[BYTES];
    char from[BYTES];
    for (unsigned round = 0; round < 400; round++) {
        int owned = round % 4 == 3, again = 0;
        grain = bucket_grain(BYTES, round % 3 * 4);
        prepare(owned);
        srand(round);
        memset(want, -1, sizeof want);
        for (int put = rand() % 40; put > 0; put--) {
            uint32_t at = cut((uint32_t)rand() % BYTES);
            uint32_t bytes = cut((uint32_t)rand() % (put % 3 ? 100u << grain : BYTES));
            bytes = bytes > BYTES - at ? BYTES - at : bytes;
            memset(from, put, bytes);
            bucket_put(&bucket, START + at, from, bytes, 0);
            for (uint32_t i = at; i < at + bytes; i++) {
                again |= want[i] >= 0;
                want[i] = put;
            }
        }
        bucket_done(&bucket);
        check_is(want, "random puts");
        CHECK(bucket_overlapped(&bucket) == again, "round %u: overlapped is %d", round, !again);
    }
    CHECK(bucket_grain(BYTES, 8) == 6, "a grain of %u", bucket_grain(BYTES, 8));
    grain = 0;
}

static void the_highest_rank_wins_in_any_order(void)
{
    static const uint32_t orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}};
    for (int o = 0; o < 4; o++) {
        int want[BYTES];
        memset(want, -1, sizeof want);
        prepare(1);
        for (int i = 0; i < 3; i++) {
            uint32_t rank = orders[o][i];
            char from[900];
            memset(from, (int)(100 + rank), sizeof from);
            bucket_put(&bucket, START + 300 * rank, from, sizeof from, rank);
        }
        for (int rank = 0; rank < 3; rank++)
            for (int i = 0; i < 900; i++)
                want[300 * rank + i] = 100 + rank;
        bucket_done(&bucket);
        check_is(want, "three ranks");
        CHECK(bucket_overlapped(&bucket), "order %d", o);
        bucket_clear(&bucket, START + BYTES);
        CHECK(!bucket_overlapped(&bucket) && !bucket_full(&bucket, 1), "after clearing");
        memset(want, -1, sizeof want);
        bucket_put(&bucket, START + BYTES, "z", 1, 0);
        bucket_done(&bucket);
        want[0] = 'z';
        check_is(want, "a low rank after clearing");
    }
}

static void full_means_every_byte(void)
{
    char from[BYTES] = "";
    for (uint32_t missing = 0; missing < BYTES; missing += 61) {
        prepare(0);
        bucket_cover(&bucket, START, missing);
        bucket_put(&bucket, START + missing + 1, from, BYTES - missing - 1, 3);
        bucket_done(&bucket);
        CHECK(!bucket_full(&bucket, BYTES) && bucket_full(&bucket, missing) &&
                  !bucket_full(&bucket, missing + 1),
              "byte %u is missing", missing);
        bucket_put(&bucket, START + missing, from, 1, 3);
        bucket_done(&bucket);
        CHECK(bucket_full(&bucket, BYTES) && !bucket_overlapped(&bucket), "after byte %u", missing);
    }
}

/* Thread t owns the pieces t, t + THREADS, ... of the bucket; with `overlapping` all of them, and
 * they put one at a time. */
static int overlapping;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *put_pieces(void *argument)
{
    uint32_t t = (uint32_t)(uintptr_t)argument;
    struct bucket view;
    char from[24];
    bucket_lay(&view, memory, BYTES, 0, overlapping);
    view.start = START;
    memset(from, (int)t + 1, sizeof from);
    for (uint32_t n = 0; n < BYTES / 24; n++) {
        if (overlapping)
            pthread_mutex_lock(&turn);
        if (overlapping || n % THREADS == t)
            bucket_put(&view, START + n * 24, from, 24, t);
        if (overlapping)
            pthread_mutex_unlock(&turn);
    }
    bucket_done(&view);
    return NULL;
}

static void run_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, put_pieces, (void *)t);
    for (uint32_t t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
}

static void ranks_put_at_once_without_losing_a_bit(void)
{
    int want[BYTES];
    for (int round = 0; round < 200; round++) {
        overlapping = round % 2;
        prepare(overlapping);
        run_threads();
        memset(want, -1, sizeof want);
        for (uint32_t i = 0; i < BYTES / 24 * 24; i++)
            want[i] = (int)(overlapping ? THREADS : i / 24 % THREADS + 1);
        check_is(want, "threads");
        CHECK(bucket_overlapped(&bucket) == overlapping, "overlapped is %d", !overlapping);
    }
}

int main(void)
{
    what_was_put_comes_out_as_runs();
    the_highest_rank_wins_in_any_order();
    full_means_every_byte();
    ranks_put_at_once_without_losing_a_bit();
    free(memory);
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
