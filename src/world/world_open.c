/* Making a world, and ending it. See world.h.
 *
 * Rank 0 numbers the nodes; each leader makes its node's area; where one rank of a node cannot open
 * it, the ranks of that node become nodes of their own, and everything is done once more. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "world/fault.h"
#include "world/nodes.h"
#include "world/world.h"

#define TAG_CARD 0x4210
#define CALL_NS UINT64_C(3000000000) /* the longest that neighbours try to reach each other */

/* MPI is ending: its communicators are not freed any more, in whatever order it ends them. */
static int ending;

/* Of an area: a death is seen from when there is one. */
static int is_broken(const struct io_world *w)
{
    return w->area && area_broken(w->area);
}

/* ---- over MPI, before there is an area ---- */

/* The least of everybody's code. */
static int agree_code(struct io_world *w, struct stream_net *net, int code)
{
    int64_t least = code;
    int rc = world_least(w, net, &least, 1);
    return rc ? rc : (int)least;
}

/* `alone`: this rank shares memory with nobody. */
static int number_nodes(struct io_world *w, int alone)
{
    struct node_mark mine, *marks = NULL;
    struct stream_request request = {.active = 0};
    int rc = 0;
    memset(&mine, 0, sizeof mine);
    node_mark_self(&mine);
    if (alone)
        mine.place = 0;
    if (w->rank == 0)
        rc = (marks = calloc(w->size, sizeof *marks)) ? 0 : -ENOMEM;
    rc = agree_code(w, w->all, rc);
    if (!rc)
        rc = world_finish(w, w->all, &request,
                          w->all->gather(w->all, &mine, sizeof mine, marks, &request));
    if (!rc && w->rank == 0) {
        int64_t n = nodes_number(marks, w->size, w->node_of);
        rc = n < 0 ? (int)n : 0;
    }
    free(marks);
    rc = agree_code(w, w->all, rc);
    if (!rc)
        rc = world_finish(
            w, w->all, &request,
            w->all->broadcast(w->all, w->node_of, w->size * sizeof *w->node_of, 0, &request));
    return rc;
}

static void fill_tables(struct io_world *w)
{
    memset(w->first_of, 0, (w->size + 1) * sizeof *w->first_of);
    w->n_nodes = 0;
    for (uint32_t rank = 0; rank < w->size; rank++) {
        w->local_of[rank] = w->first_of[w->node_of[rank] + 1]++;
        if (w->node_of[rank] >= w->n_nodes)
            w->n_nodes = w->node_of[rank] + 1;
    }
    for (uint32_t node = 0; node < w->n_nodes; node++)
        w->first_of[node + 1] += w->first_of[node];
    for (uint32_t rank = 0; rank < w->size; rank++)
        w->order[w->first_of[w->node_of[rank]] + w->local_of[rank]] = rank;
    w->node = w->node_of[w->rank];
    w->local = w->local_of[w->rank];
    w->n_local = w->first_of[w->node + 1] - w->first_of[w->node];
}

/* An area of this rank's node, or the first error of its ranks. */
static int join_area(struct io_world *w, struct stream_net *node, size_t room,
                     struct io_area **area)
{
    struct area_token *token = &w->opening.token;
    struct stream_request request = {.active = 0};
    int mine = w->local == 0 ? area_create(w->n_local, room, area, token) : 0;
    int rc =
        world_finish(w, node, &request, node->broadcast(node, token, sizeof *token, 0, &request));
    if (!rc && w->local)
        mine = token->fd >= 0 ? area_open(token, w->local, w->n_local, room, area) : -ENOENT;
    if (!rc)
        rc = agree_code(w, node, mine);
    if (!rc)
        area_seal(*area);
    return rc;
}

/* MPI_Comm_split waits inside MPI, where no death is seen: all of them come before the area, from
 * which on it is. */
static int join_node(struct io_world *w)
{
    struct stream_net *node = NULL;
    int rc = w->mpi->split(w->all, (int)w->node, (int)w->local, &node);
    if (!rc && w->n_nodes > 1)
        rc = w->mpi->split(w->all, w->local ? -1 : 0, (int)w->node, &w->leaders);
    if (!rc)
        rc = join_area(w, node, (size_t)w->segment_bytes * 2, &w->area);
    if (node && !is_broken(w))
        w->mpi->release(node);
    return rc;
}

int world_area(struct io_world *w, size_t room_bytes, struct io_area **out)
{
    struct area_token token;
    struct stream_net *node = NULL;
    struct io_area *area = NULL;
    if (!w->mpi)
        return area_create(1, room_bytes, out, &token);
    int mine = w->mpi->split(w->all, (int)w->node, (int)w->local, &node);
    if (!mine)
        mine = join_area(w, node, room_bytes, &area);
    int rc = is_broken(w) ? mine : agree_code(w, w->all, mine);
    if (is_broken(w))
        return rc;
    if (node)
        w->mpi->release(node);
    if (rc)
        area_destroy(area);
    else
        *out = area;
    return rc;
}

static void leave_node(struct io_world *w)
{
    area_destroy(w->area);
    w->area = NULL;
    if (w->leaders)
        w->mpi->release(w->leaders);
    w->leaders = NULL;
}

static int make_nodes(struct io_world *w)
{
    int alone = !w->share;
    for (;;) {
        int rc = number_nodes(w, alone);
        if (rc)
            return rc;
        fill_tables(w);
        int mine = join_node(w);
        rc = is_broken(w) ? mine : agree_code(w, w->all, mine);
        if (!rc || is_broken(w))
            return rc;
        leave_node(w);
        if (agree_code(w, w->all, mine && w->n_local == 1 ? mine : 0))
            return rc; /* not even memory of one's own */
        alone = alone || mine != 0;
    }
}

/* Sends `mine` to one side, -1 the left or 1 the right, and receives from the other. */
static int shift(struct io_world *w, int side, const void *mine, void *theirs, size_t bytes)
{
    struct stream_request out = {.active = 0}, in = {.active = 0};
    uint32_t right = (w->node + 1) % w->n_nodes, left = (w->node + w->n_nodes - 1) % w->n_nodes;
    struct stream_net *net = w->leaders;
    int rc = net->receive(net, theirs, bytes, side < 0 ? right : left, TAG_CARD, &in);
    if (!rc)
        rc = net->send(net, mine, bytes, side < 0 ? left : right, TAG_CARD, &out);
    rc = world_finish(w, net, &in, rc);
    return world_finish(w, net, &out, rc);
}

/* A connection counts if both ends have it; where there is none, leaders do without. */
static int make_lifeline(struct io_world *w)
{
    struct lifeline *l = &w->lifeline;
    struct world_opening *o = &w->opening;
    lifeline_start(l);
    int rc = shift(w, -1, &l->card, &o->right, sizeof o->right);
    if (!rc)
        lifeline_connect(l, &o->right, CALL_NS);
    o->have[0] = l->left >= 0;
    o->have[1] = l->right >= 0;
    if (!rc)
        rc = shift(w, -1, &o->have[0], &o->theirs[1], sizeof o->theirs[1]);
    if (!rc)
        rc = shift(w, 1, &o->have[1], &o->theirs[0], sizeof o->theirs[0]);
    if (!rc && !o->theirs[0])
        lifeline_forget(l, -1);
    if (!rc && !o->theirs[1])
        lifeline_forget(l, 1);
    w->has_lifeline = 1; /* not before: the other end of one that does not count may be closed */
    return rc;
}

static int make_leaders(struct io_world *w)
{
    io_fault_kill(IO_FAULT_JOIN);
    if (w->n_nodes == 1)
        return 0;
    int rc = w->leaders ? make_lifeline(w) : 0;
    io_fault_kill(IO_FAULT_JOIN);
    return agree_code(w, w->all, rc);
}

/* ---- one world ---- */

static void destroy(struct io_world *w)
{
    if (w->has_lifeline)
        lifeline_close(&w->lifeline);
    if (w->broken.code) /* MPI may still have messages from it and for it */
        return;
    if (w->kept)
        w->drop(w->kept);
    area_destroy(w->area);
    if (w->mpi && !ending) {
        if (w->leaders)
            w->mpi->release(w->leaders);
        if (w->all)
            w->mpi->release(w->all);
    }
    free(w->node_of);
    free(w->local_of);
    free(w->first_of);
    free(w->order);
    free(w);
}

static int alloc_tables(struct io_world *w)
{
    w->node_of = calloc(w->size, sizeof *w->node_of);
    w->local_of = calloc(w->size, sizeof *w->local_of);
    w->first_of = calloc(w->size + 1, sizeof *w->first_of);
    w->order = calloc(w->size, sizeof *w->order);
    return w->node_of && w->local_of && w->first_of && w->order ? 0 : -ENOMEM;
}

static int create_alone(struct io_world *w)
{
    struct area_token token;
    w->all = net_single();
    w->size = 1;
    int rc = alloc_tables(w);
    if (rc)
        return rc;
    fill_tables(w);
    return area_create(1, (size_t)w->segment_bytes * 2, &w->area, &token);
}

static int fail(struct io_world *w, int rc, struct brg_error *err)
{
    if (is_broken(w))
        rc = world_broke(w, err);
    else if (rc == -ECOMM)
        w->broken.code = brg_error_system(err, rc, "cannot use the communicator");
    else
        brg_error_system(err, rc, w->mpi ? "cannot use the communicator" : "no memory for a file");
    destroy(w);
    return rc;
}

static int create(uintptr_t comm, const struct mpi_interface *mpi, int share,
                  uint64_t segment_bytes, struct io_world **out, struct brg_error *err)
{
    struct io_world *w = calloc(1, sizeof *w);
    if (!w)
        return brg_error_system(err, -ENOMEM, "no memory for a file");
    w->mpi = mpi;
    w->share = share;
    w->segment_bytes = segment_bytes;
    int rc = mpi ? mpi->duplicate(comm, &w->all) : create_alone(w);
    if (!rc && mpi) {
        int64_t least[2] = {share, (int64_t)segment_bytes};
        w->rank = w->all->rank;
        w->size = w->all->size;
        io_fault_start(w->rank);
        rc = agree_code(w, w->all, alloc_tables(w));
        if (!rc)
            rc = world_least(w, w->all, least, 2);
        w->share = least[0] != 0;
        w->segment_bytes = (uint64_t)least[1];
        if (!rc)
            rc = make_nodes(w);
        if (!rc)
            rc = make_leaders(w);
        if (!rc) {
            w->area->tick = world_tick;
            w->area->tick_context = w;
        }
    }
    if (rc)
        return fail(w, rc, err);
    *out = w;
    return 0;
}

/* ---- those of a communicator ---- */

static void drop_all(void *value)
{
    for (struct io_world *w = value, *next; w; w = next) {
        next = w->next;
        w->forsaken = 1;
        if (w->users == 0)
            destroy(w);
    }
}

/* MPI_COMM_SELF is never freed but when MPI ends, and is the first then. What it keeps is the
 * worlds of files opened on it, behind a first one that is none. */
static void drop_self(void *value)
{
    struct io_world *head = value;
    ending = 1;
    drop_all(head->next);
    free(head);
}

static int watch_end(const struct mpi_interface *mpi)
{
    if (mpi->kept(mpi->self))
        return 0;
    struct io_world *head = calloc(1, sizeof *head);
    int rc = head ? mpi->keep(mpi->self, head, drop_self) : -ENOMEM;
    if (rc)
        free(head);
    return rc;
}

static struct io_world *first_of(const struct mpi_interface *mpi, uintptr_t comm)
{
    struct io_world *w = mpi->kept(comm);
    return w && comm == mpi->self ? w->next : w;
}

/* The world of a communicator that has none yet is kept by it; others follow that one. */
static int keep(const struct mpi_interface *mpi, uintptr_t comm, struct io_world *w)
{
    struct io_world *head = mpi->kept(comm);
    if (!head)
        return mpi->keep(comm, w, drop_all);
    w->next = head->next;
    head->next = w;
    return 0;
}

static int open_on(const struct mpi_interface *mpi, uintptr_t comm, int share,
                   uint64_t segment_bytes, struct io_world **out, struct brg_error *err)
{
    struct io_world *w = first_of(mpi, comm);
    int64_t least[2] = {share != 0, (int64_t)segment_bytes};
    if (w) {
        int rc = world_minimum(w, least, 2, err);
        if (rc)
            return rc;
    }
    for (; w; w = w->next)
        if (w->share == (int)least[0] && w->segment_bytes == (uint64_t)least[1]) {
            *out = w;
            return 0;
        }
    int rc = watch_end(mpi);
    if (rc)
        return brg_error_system(err, rc, "cannot use the communicator");
    rc = create(comm, mpi, (int)least[0], (uint64_t)least[1], &w, err);
    if (rc)
        return rc;
    if ((rc = keep(mpi, comm, w)))
        return fail(w, rc, err);
    *out = w;
    return 0;
}

int world_open(uintptr_t comm, int share, uint64_t segment_bytes, struct io_world **out,
               struct brg_error *err)
{
    const struct mpi_interface *mpi = NULL;
    int rc = comm ? mpi_join(&mpi, err) : 0;
    if (rc)
        return rc;
    rc = mpi ? open_on(mpi, comm, share, segment_bytes, out, err)
             : create(0, NULL, 0, segment_bytes, out, err);
    if (!rc)
        (*out)->users++;
    return rc;
}

void world_close(struct io_world *world)
{
    if (--world->users == 0 && (!world->mpi || world->forsaken))
        destroy(world);
}
