/* Writing behind, over a store of this test's own: it holds bytes in memory, can be made to wait,
 * and fails when told to. */
#include "drain/drain.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../claim.h"
#include "base/error.h"

#define TRUE(condition) CHECK(condition, "in %s", __func__)

#define ROOM (256u << 10)
#define FILE_BYTES (8u << 20)

static struct {
    pthread_mutex_t lock;
    pthread_cond_t opened;
    int shut;
    char bytes[FILE_BYTES];
    unsigned writes;
    unsigned fail_at; /* the write of this number fails; 0: none */
    unsigned shown;   /* of the writes */
    pthread_t last;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER, .opened = PTHREAD_COND_INITIALIZER};

int store_write(struct io_store *store, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err)
{
    (void)store;
    int rc = 0;
    pthread_mutex_lock(&world.lock);
    while (world.shut)
        pthread_cond_wait(&world.opened, &world.lock);
    world.last = pthread_self();
    if (++world.writes == world.fail_at) {
        rc = brg_error_set(err, -ENOSPC, "full");
        err->offset = (int64_t)offset;
    } else {
        memcpy(world.bytes + offset, buf, bytes);
    }
    pthread_mutex_unlock(&world.lock);
    return rc;
}

int store_push(struct io_store *store, size_t bytes, uint64_t offset, struct brg_error *err)
{
    (void)store, (void)bytes, (void)offset, (void)err;
    return 0;
}

int store_show(struct io_store *store, struct brg_error *err)
{
    (void)store, (void)err;
    world.shown = world.writes;
    return 0;
}

static void gate(int shut)
{
    pthread_mutex_lock(&world.lock);
    world.shut = shut;
    pthread_cond_broadcast(&world.opened);
    pthread_mutex_unlock(&world.lock);
}

static struct drain *begin(int async)
{
    struct io_hints hints = {.async = async, .buffer_bytes = ROOM};
    struct brg_error err;
    struct drain *drain;
    memset(world.bytes, 0, sizeof world.bytes);
    world.writes = world.fail_at = world.shown = 0;
    TRUE(drain_open(NULL, &hints, &drain, &err) == 0);
    return drain;
}

static int nothing(void *ran, struct brg_error *err)
{
    (void)err;
    *(int *)ran = 1;
    return 0;
}

static int settle(struct drain *drain, struct brg_error *err)
{
    int ran = 0;
    drain_run(drain, nothing, &ran, 0);
    int rc = drain_ended(drain, 60000, err);
    TRUE(rc < 0 || ran);
    return rc;
}

/* Each writer fills every fourth stretch of the file, in writes of sizes of all kinds. */
struct writer {
    struct drain *drain;
    unsigned number;
};

static char byte_at(uint64_t offset)
{
    return (char)(offset * 2654435761u >> 13);
}

static void *write_share(void *argument)
{
    struct writer *w = argument;
    unsigned seed = w->number;
    static _Thread_local char buf[FILE_BYTES / 16];
    for (uint64_t stretch = w->number; stretch < 16; stretch += 4) {
        uint64_t at = stretch * sizeof buf, end = at + sizeof buf;
        while (at < end) {
            size_t n = rand_r(&seed) % 3 ? (size_t)rand_r(&seed) % 200 + 1
                                         : (size_t)rand_r(&seed) % (2 * ROOM) + 1;
            if (n > end - at)
                n = end - at;
            for (size_t i = 0; i < n; i++)
                buf[i] = byte_at(at + i);
            TRUE(drain_write(w->drain, buf, n, at, NULL) == 0);
            memset(buf, 0, n); /* it may be used again */
            at += n;
        }
    }
    return NULL;
}

static void what_several_threads_write_arrives_whole(int async)
{
    struct drain *drain = begin(async);
    struct writer writers[4];
    pthread_t threads[4];
    for (unsigned i = 0; i < 4; i++) {
        writers[i] = (struct writer){drain, i};
        TRUE(pthread_create(&threads[i], NULL, write_share, &writers[i]) == 0);
    }
    for (unsigned i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    TRUE(settle(drain, NULL) == 1);
    TRUE(drain_held(drain) == 0);
    char text[200];
    TRUE(drain_explain(drain, text, sizeof text) == strlen(text));
    TRUE(async ? strstr(text, "behind: 8.0 MiB") == text : !*text);
    TRUE(drain_explain(drain, text, 10) == strlen(text));
    uint64_t same = 0;
    while (same < FILE_BYTES && world.bytes[same] == byte_at(same))
        same++;
    CHECK(same == FILE_BYTES, "byte %llu differs", (unsigned long long)same);
    drain_close(drain);
}

static _Atomic int writer_done;

static void *write_much(void *drain)
{
    static char buf[3 * ROOM];
    memset(buf, 'x', sizeof buf);
    TRUE(drain_write(drain, buf, sizeof buf, 100, NULL) == 0);
    writer_done = 1;
    return NULL;
}

static void a_full_buffer_makes_the_writer_wait(void)
{
    struct drain *drain = begin(1);
    pthread_t thread;
    uint64_t held = 0, before = 1;
    writer_done = 0;
    gate(1);
    TRUE(pthread_create(&thread, NULL, write_much, drain) == 0);
    while (held != before || held == 0) {
        before = held;
        usleep(100000);
        held = drain_held(drain);
        TRUE(held <= ROOM);
    }
    TRUE(!writer_done);
    gate(0);
    pthread_join(thread, NULL);
    TRUE(settle(drain, NULL) == 1);
    TRUE(world.bytes[99] == 0 && world.bytes[100] == 'x' && world.bytes[99 + 3 * ROOM] == 'x');
    drain_close(drain);
}

static void the_last_of_two_writes_to_a_byte_stays(void)
{
    struct drain *drain = begin(1);
    for (char c = 'a'; c <= 'z'; c++)
        TRUE(drain_write(drain, &c, 1, 5, NULL) == 0);
    TRUE(settle(drain, NULL) == 1);
    TRUE(world.bytes[5] == 'z' && world.writes == 26);
    TRUE(!pthread_equal(world.last, pthread_self()));
    drain_close(drain);
}

static void clearing_waits_for_these_bytes_only(void)
{
    struct drain *drain = begin(1);
    gate(1);
    TRUE(drain_write(drain, "0123456789", 10, 100, NULL) == 0);
    TRUE(drain_clear(drain, 0, 100, NULL) == 0);
    TRUE(drain_clear(drain, 110, 200, NULL) == 0);
    TRUE(drain_held(drain) == 10);
    gate(0);
    TRUE(drain_clear(drain, 109, 110, NULL) == 0);
    TRUE(world.bytes[109] == '9' && drain_held(drain) == 0);
    drain_close(drain);
}

static void what_is_shown_is_all_that_was_put_here(void)
{
    struct drain *drain = begin(1);
    for (unsigned i = 0; i < 50; i++)
        TRUE(drain_write(drain, "x", 1, i, NULL) == 0);
    TRUE(drain_show(drain, NULL) == 0 && world.shown == 50);
    drain_close(drain);
}

static void after_a_failure_all_fails_alike_and_nothing_more_is_written(void)
{
    struct drain *drain = begin(1);
    struct brg_error err = {0};
    char buf[4096] = "";
    int ran = 0, rc = 0;
    world.fail_at = 3;
    for (unsigned i = 0; i < 200 && !rc; i++)
        rc = drain_write(drain, buf, sizeof buf, i * sizeof buf, &err);
    drain_run(drain, nothing, &ran, 0);
    rc = drain_ended(drain, 60000, &err);
    TRUE(rc == -ENOSPC && err.code == rc && err.offset == 2 * sizeof buf);
    TRUE(drain_write(drain, buf, 1, 0, &err) == rc && err.offset == 2 * sizeof buf);
    TRUE(drain_clear(drain, 0, 1, &err) == rc);
    TRUE(drain_show(drain, &err) == rc);
    drain_close(drain);
    TRUE(!ran && world.writes == 3 && !world.shown);
}

static void closing_early_waits_for_nothing_but_the_write_under_way(void)
{
    struct drain *drain = begin(1);
    for (unsigned i = 0; i < 20; i++) {
        gate(1);
        TRUE(drain_write(drain, "x", 1, i, NULL) == 0);
        if (i % 2)
            gate(0);
    }
    gate(0);
    drain_close(drain);
    TRUE(world.writes <= 20);
}

static void without_the_hint_writes_go_straight_to_the_store(void)
{
    struct drain *drain = begin(0);
    TRUE(drain_write(drain, "x", 1, 7, NULL) == 0);
    TRUE(world.bytes[7] == 'x' && pthread_equal(world.last, pthread_self()));
    int ran = 0;
    drain_run(drain, nothing, &ran, 0);
    TRUE(ran && drain_ended(drain, 0, NULL) == 1);
    drain_close(drain);
}

int main(void)
{
    alarm(120);
    what_several_threads_write_arrives_whole(0);
    what_several_threads_write_arrives_whole(1);
    a_full_buffer_makes_the_writer_wait();
    the_last_of_two_writes_to_a_byte_stays();
    clearing_waits_for_these_bytes_only();
    what_is_shown_is_all_that_was_put_here();
    after_a_failure_all_fails_alike_and_nothing_more_is_written();
    closing_early_waits_for_nothing_but_the_write_under_way();
    without_the_hint_writes_go_straight_to_the_store();
    return failures != 0;
}
