/* Meeting: what all ranks of a world do together. See world.h. */
#include "world/world.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/pause.h"
#include "stream/group.h"
#include "world/fault.h"

#define TAG_DEATH 0x4200 /* a word, from any rank to a leader: the rank that died, a uint32_t */
#define TICK_NS UINT64_C(100000) /* one sleep in 200 */
#define TICK_LOOKS 16
#define TICK_MOVES 6u        /* so much longer than those that move nothing */
#define TICK_CHANCE_NS 3000u /* an interrupt */
#define TICKS_TO_KNOW 4u     /* how long those take */
#define LOOK_NS UINT64_C(100000000)
#define TELL_NS UINT64_C(300000000) /* a connection is made, where there was none yet */

/* ---- what breaks a world ---- */

/* Lets MPI bring `n` words on their way, for as long as some are not taken, TELL_NS at most: who
 * has heard before has left, and takes none. */
static void bring(struct io_world *w, struct stream_request *words, uint32_t n)
{
    uint64_t began = brg_clock_ns();
    struct timespec nap = {.tv_nsec = (long)PAUSE_MOST_NS};
    do {
        uint32_t open = 0;
        for (uint32_t i = 0; i < n; i++) {
            int done = 0;
            if (words[i].active && w->all->test(w->all, &words[i], &done))
                words[i].active = 0;
            open += words[i].active != 0;
        }
        if (!open || brg_clock_ns() - began > TELL_NS)
            return;
        nanosleep(&nap, NULL);
    } while (1);
}

/* Who learns of a death tells the leaders: the first survivor of its node, dead as its own leader
 * may be, and each leader the ones beside it, whom it has a connection to. Without one the word
 * must have been taken before this rank leaves: MPI keeps what is small, and it would end with
 * its sender. */
static void tell(struct io_world *w, uint32_t dead)
{
    if (w->told || w->n_nodes == 1)
        return;
    w->told = 1;
    w->word = dead;
    if (w->has_lifeline)
        lifeline_tell(&w->lifeline, dead);
    struct stream_request *words = calloc(w->n_nodes, sizeof *words);
    if (!words)
        return;
    for (uint32_t node = 0; node < w->n_nodes; node++) {
        uint32_t leader = w->leader_of[node];
        if (node == w->node || leader == dead)
            continue;
        if (w->has_lifeline)
            w->all->send(w->all, &w->word, sizeof w->word, leader, TAG_DEATH, &words[node]);
        else
            w->all->send_matched(w->all, &w->word, sizeof w->word, leader, TAG_DEATH, &words[node]);
    }
    bring(w, words, w->n_nodes);
    free(words);
}

int world_broke(struct io_world *w, struct brg_error *err)
{
    const struct area_head *head = w->area->head;
    uint32_t here = atomic_load(&head->dead), there = atomic_load(&head->dead_elsewhere);
    if (!w->broken.code) {
        if (here || there) {
            int rank = (int)(here ? w->order[w->first_of[w->node] + here - 1] : there - 1);
            brg_error_set(&w->broken, -EOWNERDEAD, "rank %d has died", rank);
            w->broken.rank = rank;
        } else
            brg_error_set(&w->broken, atomic_load(&head->code),
                          "MPI failed between the ranks of the file");
    }
    if (w->broken.rank >= 0 && (w->has_lifeline || (here && w->local == (here == 1))))
        tell(w, (uint32_t)w->broken.rank);
    if (err)
        *err = w->broken;
    return w->broken.code;
}

static void learn(struct io_world *w, uint32_t dead)
{
    uint32_t nobody = 0;
    atomic_compare_exchange_strong(&w->area->head->dead_elsewhere, &nobody, dead + 1);
}

/* The neighbours, who pass on what they learn. */
static void look_beside(struct io_world *w)
{
    uint32_t dead;
    int side, news = w->has_lifeline ? lifeline_look(&w->lifeline, &side, &dead) : 0;
    if (!news)
        return;
    if (news == LIFELINE_ENDED)
        dead = w->leader_of[(w->node + (side > 0 ? 1 : w->n_nodes - 1)) % w->n_nodes];
    learn(w, dead);
}

/* Only leaders have words to hear. */
static int listen(struct io_world *w)
{
    uint32_t dead;
    struct stream_request request = {.active = 0};
    int heard = 0;
    if (w->leaders && w->mpi->waits(w->all, TAG_DEATH) &&
        w->all->receive(w->all, &dead, sizeof dead, STREAM_ANY, TAG_DEATH, &request) == 0) {
        while (!heard && w->all->test(w->all, &request, &heard) == 0)
            ; /* it is there already */
        if (heard)
            learn(w, dead);
    }
    look_beside(w);
    uint64_t now = brg_clock_ns();
    if (now - w->looked_ns > LOOK_NS) {
        w->looked_ns = now;
        area_look(w->area, NULL, 0);
    }
    return area_broken(w->area);
}

/* ---- leaders ---- */

int world_finish(struct io_world *w, struct stream_net *net, struct stream_request *request, int rc)
{
    struct pause pause = {.began_ns = 0};
    int done = 0;
    while (!rc) {
        rc = net->test(net, request, &done);
        if (done || rc)
            break;
        if (pause_before_next(&pause, w->met ? 0 : PAUSE_TOGETHER_NS) && w->area)
            rc = listen(w);
    }
    return rc;
}

int world_look(struct io_world *w)
{
    look_beside(w);
    return area_broken(w->area);
}

int world_rest(struct io_world *w, uint32_t seen, uint64_t ns)
{
    area_doze(&w->area->head->bell, seen, ns);
    return listen(w);
}

/* Of the processor's time: others may run meanwhile. */
static uint64_t looks(struct io_world *w)
{
    struct timespec began, ended;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &began);
    for (int i = 0; i < TICK_LOOKS; i++)
        w->mpi->progress();
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended);
    return (uint64_t)((ended.tv_sec - began.tv_sec) * 1000000000 + ended.tv_nsec - began.tv_nsec);
}

/* Whether they took much longer than any of their kind. */
static int took_long(uint64_t took, uint64_t *least)
{
    if (!*least || took < *least)
        *least = took;
    return took > TICK_MOVES * *least + TICK_CHANCE_NS;
}

/* MPI does not say whether it has moved anything: looks that did took longer. Some look further
 * than others, to other nodes perhaps, so several are taken together; the first ones after a sleep
 * find little in the processor's cache. */
int world_tick(void *world)
{
    struct io_world *w = world;
    uint64_t began = brg_clock_ns();
    int moved = took_long(looks(w), &w->first_looks_ns);
    do
        moved |= took_long(looks(w), &w->looks_ns);
    while (brg_clock_ns() - began < TICK_NS);
    w->ticks += w->ticks < TICKS_TO_KNOW;
    return moved || w->ticks < TICKS_TO_KNOW;
}

/* ---- a meeting ---- */

int world_least(struct io_world *w, struct stream_net *net, int64_t *least, int n)
{
    struct stream_request request = {.active = 0};
    memcpy(w->mine, least, (size_t)n * sizeof *least);
    /* Who is gone before this rank begins takes no part. Later it may have taken it. */
    int rc = w->area ? world_look(w) : 0;
    if (rc)
        return rc;
    rc = world_finish(w, net, &request, net->minimum(net, w->mine, w->least, n, &request));
    if (!rc)
        memcpy(least, w->least, (size_t)n * sizeof *least);
    return rc;
}

/* What a rank shares as ranks meet. */
struct sharing {
    char *chunk; /* in the area */
    size_t bytes;
    uint32_t root;
};

/* world_least among the leaders, and the bytes of one node come to all. */
static int least_and_share(struct io_world *w, int64_t *least, int n, const struct sharing *s)
{
    struct stream_request request = {.active = 0};
    uint32_t root = w->node_of[s->root];
    int rc = world_look(w);
    if (rc)
        return rc;
    memcpy(w->least, least, (size_t)n * sizeof *least);
    if (w->node == root)
        memcpy(w->least + n + 1, s->chunk, s->bytes);
    rc = world_finish(w, w->leaders, &request,
                      group_share(w->leaders, w->least, n, s->bytes, root, &request));
    if (!rc)
        memcpy(least, w->least, (size_t)n * sizeof *least);
    if (!rc && w->node != root)
        memcpy(s->chunk, w->least + n + 1, s->bytes);
    return rc;
}

static int reduce(struct io_world *w, int64_t *least, int n, const struct sharing *share)
{
    struct area_head *head = w->area->head;
    memcpy(least, head->cells[0].values, (size_t)n * sizeof *least);
    for (uint32_t i = 1; i < w->n_local; i++)
        for (int k = 0; k < n; k++)
            if (head->cells[i].values[k] < least[k])
                least[k] = head->cells[i].values[k];
    if (!w->leaders)
        return 0;
    if (share)
        return least_and_share(w, least, n, share);
    return n ? world_least(w, w->leaders, least, n) : world_look(w);
}

/* A meeting ends once, well or badly, for all ranks of a node: `generation` says which, and who
 * sees a death changes it only if it has not ended. */
#define BADLY UINT32_C(0x40000000)

static void end_meeting(struct io_world *w, uint32_t how)
{
    uint32_t before = w->met - 1;
    if (atomic_compare_exchange_strong(&w->area->head->generation, &before, w->met + how))
        area_wake(&w->area->head->generation);
}

/* What is done in a meeting besides, by one rank of each node. */
struct together {
    const struct sharing *share; /* NULL: nothing */
    int (*alone)(void *context, int64_t *least);
    void *context;
};

/* Done by one rank of the node when all have come. */
static void complete(struct io_world *w, int n, const struct together *t)
{
    struct area_head *head = w->area->head;
    int64_t least[WORLD_VALUES] = {0};
    int rc = reduce(w, least, n, t->share);
    if (!rc && t->alone)
        rc = t->alone(t->context, least);
    if (rc && rc != -EOWNERDEAD)
        atomic_store(&head->code, rc);
    memcpy(head->result, least, (size_t)n * sizeof *least);
    end_meeting(w, rc ? BADLY : 0);
}

static int meet(struct io_world *w, int64_t *values, int n, const struct together *together,
                struct brg_error *err)
{
    struct area_head *head = w->area->head;
    if (w->broken.code)
        return world_broke(w, err);
    io_fault_kill(IO_FAULT_MEET);
    memcpy(head->cells[w->local].values, values, (size_t)n * sizeof *values);
    w->met++;
    uint32_t all = w->met * w->n_local;
    uint32_t came = atomic_fetch_add_explicit(&head->arrived, 1, memory_order_acq_rel) + 1;
    int rc = 0;
    if (w->leaders) {
        rc = area_wait(w->area, &head->arrived, all);
        if (!rc)
            complete(w, n, together);
    } else if (came == all && w->n_nodes > 1)
        area_wake(&head->arrived);
    else if (came == all)
        complete(w, n, together);
    if (!rc)
        rc = area_wait(w->area, &head->generation, w->met);
    if (rc)
        end_meeting(w, BADLY);
    if (atomic_load_explicit(&head->generation, memory_order_acquire) != w->met)
        return world_broke(w, err);
    memcpy(values, head->result, (size_t)n * sizeof *values);
    return 0;
}

int world_meet(struct io_world *w, int64_t *values, int n, int (*alone)(void *, int64_t *),
               void *context, struct brg_error *err)
{
    const struct together together = {.alone = alone, .context = context};
    return meet(w, values, n, &together, err);
}

int world_minimum(struct io_world *w, int64_t *values, int n, struct brg_error *err)
{
    return world_meet(w, values, n, NULL, NULL, err);
}

int64_t world_heard(const struct io_world *w, uint32_t rank, int i)
{
    return w->area->head->cells[w->local_of[rank]].values[i];
}

void world_tell(struct io_world *w, uint32_t rank, int i, int64_t word)
{
    w->area->head->cells[w->local_of[rank]].values[i] = word;
}

int64_t world_told(const struct io_world *w, int i)
{
    return w->area->head->cells[w->local].values[i];
}

/* ---- sharing ---- */

int world_share(struct io_world *w, void *buf, size_t bytes, uint32_t root, struct brg_error *err)
{
    int64_t nothing = 0;
    return world_share_and_least(w, buf, bytes, root, &nothing, 1, err);
}

int world_share_and_least(struct io_world *w, void *buf, size_t bytes, uint32_t root,
                          int64_t *values, int n, struct brg_error *err)
{
    for (size_t done = 0; done < bytes; n = 0) {
        struct sharing s = {.chunk = w->area->head->share[w->shared_chunks++ % 2],
                            .bytes = bytes - done,
                            .root = root};
        const struct together together = {.share = &s};
        if (s.bytes > AREA_SHARE_BYTES)
            s.bytes = AREA_SHARE_BYTES;
        if (w->rank == root && buf)
            memcpy(s.chunk, (char *)buf + done, s.bytes);
        int rc = meet(w, values, n, &together, err);
        if (rc)
            return rc;
        if (w->rank != root && buf)
            memcpy((char *)buf + done, s.chunk, s.bytes);
        done += s.bytes;
    }
    return 0;
}

/* ---- failures ---- */

int64_t world_failure_key(const struct io_world *world, const struct brg_error *mine)
{
    return mine->code ? (int64_t)world->rank : INT64_MAX;
}

int world_failure_of(struct io_world *world, int64_t least, struct brg_error *mine)
{
    struct brg_error err;
    if (least == INT64_MAX)
        return 0;
    if (mine->code && mine->rank < 0)
        mine->rank = (int)world->rank;
    if (world_share(world, mine, sizeof *mine, (uint32_t)least, &err))
        *mine = err;
    return mine->code;
}

int world_failure(struct io_world *world, struct brg_error *mine)
{
    int64_t least = world_failure_key(world, mine);
    struct brg_error err;
    if (world_minimum(world, &least, 1, &err)) {
        *mine = err;
        return err.code;
    }
    return world_failure_of(world, least, mine);
}
