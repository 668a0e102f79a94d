/* One-sided and two-sided engine side by side, on one group of ranks: seconds of each of some
 * interleaved rounds, and what the calls cost. No sync, no checksums: the moving alone, and writes
 * into the page cache or a network file system.
 *
 *   onesided_speed BACK-END FOLDER KIB ROUNDS WINDOW HINTS    (BACK-END as in tests/pgas/group.h)
 *
 * KIB: of each rank. Prints one JSON object a line for each pattern and engine. */
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#include "base/clock.h"
#include "group.h"
#include "move/move.h"
#include "move/onesided.h"

#define MOST_ROUNDS 64

struct bench {
    struct test_group g;
    struct pgas *p;
    struct onesided *o;
    struct io_hints hints;
    struct store_token token;
    char path[4096];
    struct io_store *store;
    struct drain *drain;
    struct io_request request;
    uint64_t bytes, size; /* of a rank, of the file */
};

static void die(struct brg_error *err)
{
    group_die("call", err);
}

/* The block of this rank in an array of all: `n` of `run` bytes, one of `ranks` in turn. */
static void ask(struct bench *b, const char *pattern, char *memory)
{
    struct brg_error err = {0};
    uint64_t ranks = b->p->size, rank = b->p->rank;
    uint64_t run = !strcmp(pattern, "24-byte") ? 24
                   : !strcmp(pattern, "3 KiB") ? 3 << 10
                                               : 64 << 10;
    uint64_t n = b->bytes / run;
    uint64_t x = n > 64 * 16 ? n / (64 * 16) : 1;
    uint64_t shape[4] = {n / (16 * x), 16, x, ranks}, start[4] = {0, 0, 0, rank};
    uint64_t count[4] = {n / (16 * x), 16, x, 1};
    int rc;
    if (!strcmp(pattern, "contiguous")) {
        brg_piece piece = {.offset = rank * b->bytes, .bytes = b->bytes};
        rc = request_of_pieces(&b->request, &piece, 1, memory, &err);
        b->size = ranks * b->bytes;
    } else {
        rc = request_of_block(&b->request, 0, run, 4, shape, start, count, NULL, memory, &err);
        b->size = shape[0] * 16 * x * ranks * run;
    }
    if (rc)
        die(&err);
}

static void open_file(struct bench *b)
{
    struct brg_error err = {0};
    if (b->p->rank == 0)
        close(open(b->path, O_RDWR | O_CREAT | O_TRUNC, 0600));
    if (b->p->rank == 0 && store_prepare(b->path, BRG_WRITE, &b->hints, NULL, &b->token, &err))
        die(&err);
    if (b->p->broadcast(b->p, &b->token, sizeof b->token, 0, &err) ||
        store_open(&b->token, &b->hints, b->p->rank, NULL, &b->store, &err) ||
        drain_open(b->store, &b->hints, &b->drain, &err))
        die(&err);
}

static void close_file(struct bench *b)
{
    drain_close(b->drain);
    store_close(b->store);
}

static void one_sided(struct bench *b, int write)
{
    struct brg_error err = {0};
    uint64_t size;
    struct hull behind = {0, 0}; /* nothing is asked to be shown, nor is it by the other engine */
    struct onesided_call call = {.o = b->o,
                                 .hints = &b->hints,
                                 .place = move_place(&b->token, write),
                                 .size = write ? 0 : b->size,
                                 .behind = &behind,
                                 .store = b->store,
                                 .drain = b->drain,
                                 .request = &b->request};
    if (write ? onesided_write(&call, &size, &err) : onesided_read(&call, &size, &err))
        die(&err);
}

static void two_sided(struct bench *b, int write)
{
    struct io_world *w = b->g.world;
    struct brg_error err = {0};
    struct io_plan plan;
    int64_t v[2] = {(int64_t)request_mean_run(&b->request), request_grain(&b->request)};
    struct plan_ranks ranks = move_ranks(w);
    struct plan_place place = move_place(&b->token, write);
    if (world_minimum(w, v, 2, &err))
        die(&err);
    struct io_extent extent = {.high = b->size, .run = (uint64_t)v[0], .grain = (uint32_t)v[1]};
    struct io_call call = {.world = w,
                           .plan = &plan,
                           .store = b->store,
                           .drain = b->drain,
                           .size = b->size,
                           .request = &b->request};
    plan_make(&plan, &b->hints, &place, &extent, &ranks);
    if (write ? move_write(&call, &err) : move_read(&call, &err))
        die(&err);
}

/* Seconds until the last rank is done. */
static double timed(struct bench *b, void (*call)(struct bench *, int), int write)
{
    struct brg_error err = {0};
    if (pgas_barrier(b->p, &err))
        die(&err);
    uint64_t began = brg_clock_ns();
    call(b, write);
    int64_t ns = (int64_t)(brg_clock_ns() - began);
    if (b->p->reduce(b->p, PGAS_MAX, &ns, 1, &err))
        die(&err);
    return (double)ns * 1e-9;
}

static void print_list(const char *name, const double *seconds, int n)
{
    printf("\"%s\": [", name);
    for (int i = 0; i < n; i++)
        printf("%s%.5f", i ? ", " : "", seconds[i]);
    printf("]");
}

static void print(struct bench *b, const char *pattern, const char *engine, double write[],
                  double read[], int n, const struct onesided_cost *cost)
{
    struct brg_error err = {0};
    int64_t v[] = {(int64_t)cost->additions, (int64_t)cost->near_bytes, (int64_t)cost->far_bytes,
                   (int64_t)cost->far_moves, (int64_t)cost->own_bytes};
    if (b->p->reduce(b->p, PGAS_SUM, v, 5, &err))
        die(&err);
    if (b->p->rank)
        return;
    printf(
        "{\"pattern\": \"%s\", \"engine\": \"%s\", \"ranks\": %u, \"nodes\": %u, \"bytes\": %lu, ",
        pattern, engine, b->p->size, b->p->n_nodes, (unsigned long)b->size);
    print_list("write_s", write, n);
    printf(", ");
    print_list("read_s", read, n);
    printf(", \"additions\": %ld, \"near_bytes\": %ld, \"far_bytes\": %ld, \"far_moves\": %ld, "
           "\"own_bytes\": %ld, \"rounds\": %lu, \"meetings\": %lu}\n",
           (long)v[0], (long)v[1], (long)v[2], (long)v[3], (long)v[4], (unsigned long)cost->rounds,
           (unsigned long)cost->meetings);
}

static void compare(struct bench *b, const char *pattern, int rounds, char *memory)
{
    double write[2][MOST_ROUNDS] = {{0}}, read[2][MOST_ROUNDS] = {{0}};
    struct onesided_cost before = *onesided_cost(b->o), none = {0}, now;
    int engines = b->g.world ? 2 : 1;
    ask(b, pattern, memory);
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < engines; k++) {
            open_file(b);
            write[k][i] = timed(b, k ? two_sided : one_sided, 1);
            read[k][i] = timed(b, k ? two_sided : one_sided, 0);
            close_file(b);
        }
    now = *onesided_cost(b->o);
    now.additions -= before.additions;
    now.near_bytes -= before.near_bytes;
    now.far_bytes -= before.far_bytes;
    now.far_moves -= before.far_moves;
    now.own_bytes -= before.own_bytes;
    now.rounds -= before.rounds;
    now.meetings -= before.meetings;
    print(b, pattern, b->p->name, write[0], read[0], rounds, &now);
    if (engines == 2)
        print(b, pattern, "messages", write[1], read[1], rounds, &none);
    request_destroy(&b->request);
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct brg_error err = {0};
    group_open(&b.g, argv + 1, 4 << 20);
    char **words = argv + 1 + b.g.used;
    b.p = b.g.pgas;
    int rounds = argc > 4 ? atoi(words[2]) : 0;
    hints_default(&b.hints);
    if (rounds < 1 || rounds > MOST_ROUNDS || argc < 5 + b.g.used ||
        hints_parse(&b.hints, "sync=no:update=in-place:checksums=no", &err) ||
        hints_parse(&b.hints, words[4], &err) ||
        onesided_open(b.p, strtoull(words[3], NULL, 10), &b.o, &err))
        group_die("arguments", &err);
    b.bytes = strtoull(words[1], NULL, 10) << 10;
    snprintf(b.path, sizeof b.path, "%s/file", words[0]);
    char *memory = malloc(b.bytes);
    memset(memory, (int)b.p->rank + 1, b.bytes);
    compare(&b, "64-KiB", rounds, memory);
    compare(&b, "3 KiB", rounds, memory);
    compare(&b, "24-byte", rounds, memory);
    compare(&b, "contiguous", rounds, memory);
    onesided_close(b.o);
    group_end(&b.g, 0);
}
