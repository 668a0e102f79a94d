/* See world_join.h.
 *
 * Where all ranks are on one node, one reduction says so, and where its area is. Or else rank 0
 * numbers the nodes, and each leader makes its node's area. Where one rank of a node cannot open
 * it, the ranks of that node become nodes of their own, and everything is done once more. */
#include "world/world_join.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stream/group.h"
#include "world/fault.h"
#include "world/nodes.h"

#define TAG_LEFT 0x4210 /* what leaders send to the node before theirs */
#define TAG_RIGHT 0x4211
#define TAG_NODE 0x4212
#define TAG_LEADERS 0x4213
#define CALL_NS UINT64_C(3000000000) /* the longest that neighbours try to reach each other */

int world_is_broken(const struct io_world *w)
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

/* What rank 0 tells all others: the node of each rank, and where all are on one, its area. */
struct numbering {
    int32_t code; /* or -errno */
    struct area_token token;
    uint32_t node_of[];
};

static size_t numbering_bytes(const struct io_world *w)
{
    return sizeof(struct numbering) + w->size * sizeof(uint32_t);
}

/* On rank 0, which leads the only node if there is but one. */
static void number(struct io_world *w, const struct node_mark *marks)
{
    struct numbering *n = w->opening.numbering;
    int64_t nodes = nodes_number(marks, w->size, n->node_of);
    n->code = nodes < 0 ? (int32_t)nodes : 0;
    for (uint32_t rank = 0; rank < w->size && !n->code; rank++)
        n->code = marks[rank].code;
    n->token.fd = -1;
    if (nodes == 1 && !n->code)
        area_create(w->size, world_room_bytes(w), &w->area, &n->token);
}

/* What only several nodes need. */
static int alloc_groups(struct io_world *w)
{
    w->node_group = w->node_group ? w->node_group : group_new(1);
    w->leader_group = w->leader_group ? w->leader_group : group_new(WORLD_MANY);
    return w->node_group && w->leader_group ? 0 : -ENOMEM;
}

/* `alone`: this rank shares memory with nobody. */
static int number_nodes(struct io_world *w, int alone)
{
    struct world_opening *o = &w->opening;
    struct stream_request request = {.active = 0};
    if (alone)
        o->mark.place = 0;
    o->mark.code = alloc_groups(w);
    int rc = world_finish(w, w->all, &request,
                          w->all->gather(w->all, &o->mark, sizeof o->mark, o->marks, &request));
    if (!rc && w->rank == 0)
        number(w, o->marks);
    if (!rc)
        rc = world_finish(w, w->all, &request,
                          w->all->broadcast(w->all, o->numbering, numbering_bytes(w), 0, &request));
    return rc ? rc : o->numbering->code;
}

int world_alloc(struct io_world *w)
{
    struct world_opening *o = &w->opening;
    o->numbering = calloc(1, numbering_bytes(w));
    if (w->rank == 0)
        o->marks = calloc(w->size, sizeof *o->marks);
    w->local_of = calloc(w->size, sizeof *w->local_of);
    w->first_of = calloc(w->size + 1, sizeof *w->first_of);
    w->order = calloc(w->size, sizeof *w->order);
    w->leader_of = calloc(w->size, sizeof *w->leader_of);
    if (!o->numbering || (w->rank == 0 && !o->marks))
        return -ENOMEM;
    w->node_of = o->numbering->node_of;
    return w->local_of && w->first_of && w->order && w->leader_of ? 0 : -ENOMEM;
}

void world_fill(struct io_world *w)
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
    for (uint32_t node = 0; node < w->n_nodes; node++)
        w->leader_of[node] = w->order[w->first_of[node]];
    w->node = w->node_of[w->rank];
    w->local = w->local_of[w->rank];
    w->n_local = w->first_of[w->node + 1] - w->first_of[w->node];
}

/* This rank's view of the area that the leader of its node has made, or -errno. */
static int open_area(const struct io_world *w, const struct area_token *token, size_t room,
                     struct io_area **area)
{
    return token->fd < 0 ? -ENOENT : area_open(token, w->local, w->n_local, room, area);
}

/* An area of this rank's node, whose net is `node`, or the first error of its ranks. */
static int join_area(struct io_world *w, struct stream_net *node, size_t room,
                     struct io_area **area)
{
    struct area_token *token = &w->opening.token;
    struct stream_request request = {.active = 0};
    int mine = w->local == 0 ? area_create(w->n_local, room, area, token) : 0;
    int rc =
        world_finish(w, node, &request, node->broadcast(node, token, sizeof *token, 0, &request));
    if (!rc && w->local)
        mine = open_area(w, token, room, area);
    if (!rc)
        rc = agree_code(w, node, mine);
    if (!rc)
        area_seal(*area);
    return rc;
}

/* Only collective calls may be made on a communicator of the program's. */
static int own_net(struct io_world *w)
{
    struct stream_request request = {.active = 0};
    struct stream_net *net = NULL;
    if (!w->borrowed)
        return 0;
    int rc = w->mpi->duplicate(w->borrowed, &net, &request);
    rc = rc ? rc : world_finish(w, net, &request, 0);
    if (rc)
        return rc;
    w->mpi->settle(net);
    w->mpi->release(w->all);
    w->all = net;
    w->borrowed = 0;
    return 0;
}

static int join_nodes(struct io_world *w)
{
    int rc = own_net(w);
    if (rc)
        return rc;
    group_set(w->node_group, w->all, w->order + w->first_of[w->node], w->n_local, w->local,
              TAG_NODE);
    group_set(w->leader_group, w->all, w->leader_of, w->n_nodes, w->node, TAG_LEADERS);
    w->leaders = w->local ? NULL : w->leader_group;
    return join_area(w, w->node_group, world_room_bytes(w), &w->area);
}

/* All ranks are on one node: its area came with its number. */
static int join_only_node(struct io_world *w)
{
    const struct area_token *token = &w->opening.numbering->token;
    int mine = w->area ? 0 : open_area(w, token, world_room_bytes(w), &w->area);
    int rc = agree_code(w, w->all, mine);
    if (!rc)
        area_seal(w->area);
    return rc;
}

/* One more area for all ranks of the only node, who meet in the one that they have. */
static int share_area(struct io_world *w, size_t room, struct io_area **area)
{
    struct area_token token = {.fd = -1};
    struct brg_error err;
    int64_t code = w->rank == 0 ? area_create(w->n_local, room, area, &token) : 0;
    int rc = world_share_and_least(w, &token, sizeof token, 0, &code, 1, &err);
    if (!rc && !code && w->rank != 0)
        code = open_area(w, &token, room, area);
    rc = rc ? rc : world_minimum(w, &code, 1, &err);
    rc = rc ? rc : (int)code;
    if (!rc)
        area_seal(*area);
    return rc;
}

int world_area(struct io_world *w, size_t room_bytes, struct io_area **out)
{
    struct area_token token;
    struct io_area *area = NULL;
    if (!w->mpi)
        return area_create(1, room_bytes, out, &token);
    int rc = w->n_nodes == 1 ? share_area(w, room_bytes, &area)
                             : join_area(w, w->node_group, room_bytes, &area);
    if (w->n_nodes > 1 && !world_is_broken(w))
        rc = agree_code(w, w->all, rc);
    if (world_is_broken(w))
        return rc;
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
    w->leaders = NULL;
}

/* What ranks introduce themselves with. From SHARE on only rank 0's count. */
enum {
    CODE,
    PLACE,     /* of every rank, and its complement: */
    NOT_PLACE, /* the least of both are of one only if all are the same */
    SHARE,
    SEGMENT,
    AREA_ID,
    AREA_PROCESS,
    AREA_FD,
    N_INTRODUCED
};

/* Rank 0: what it says, with the area that serves if there are no other nodes. */
static void fill_first(struct io_world *w, struct area_token *token, int64_t *v)
{
    if (!w->share || area_create(w->size, world_room_bytes(w), &w->area, token))
        *token = (struct area_token){.fd = -1};
    v[SHARE] = w->share;
    v[SEGMENT] = (int64_t)w->segment_bytes;
    memcpy(&v[AREA_ID], &token->id, sizeof token->id);
    v[AREA_PROCESS] = token->pid;
    v[AREA_FD] = token->fd;
}

static void hear_first(struct io_world *w, struct area_token *token, const int64_t *v)
{
    w->share = v[SHARE] != 0;
    w->segment_bytes = (uint64_t)v[SEGMENT];
    memcpy(&token->id, &v[AREA_ID], sizeof token->id);
    token->pid = (int32_t)v[AREA_PROCESS];
    token->fd = (int32_t)v[AREA_FD];
}

int world_introduce(struct io_world *w, int code)
{
    struct world_opening *o = &w->opening;
    struct area_token token = {.fd = -1};
    int64_t v[N_INTRODUCED];
    for (int i = 0; i < N_INTRODUCED; i++)
        v[i] = INT64_MAX;
    memset(&o->mark, 0, sizeof o->mark);
    node_mark_self(&o->mark);
    v[CODE] = code;
    v[PLACE] = (int64_t)o->mark.place;
    v[NOT_PLACE] = ~v[PLACE];
    if (w->rank == 0)
        fill_first(w, &token, v);
    int rc = world_least(w, w->all, v, N_INTRODUCED);
    rc = rc ? rc : (int)v[CODE];
    if (rc)
        return rc;
    hear_first(w, &token, v);
    o->is_one_node = w->share && v[PLACE] == ~v[NOT_PLACE];
    if (o->is_one_node)
        o->numbering->token = token;
    else
        leave_node(w);
    return 0;
}

static int make_nodes(struct io_world *w)
{
    int alone = !w->share;
    for (int known = w->opening.is_one_node;; known = 0) {
        int rc = known ? 0 : number_nodes(w, alone);
        if (rc)
            return rc;
        world_fill(w);
        int mine = w->n_nodes == 1 ? join_only_node(w) : join_nodes(w);
        rc = w->n_nodes == 1 || world_is_broken(w) ? mine : agree_code(w, w->all, mine);
        if (!rc || world_is_broken(w))
            return rc;
        leave_node(w);
        if (agree_code(w, w->all, mine && w->n_local == 1 ? mine : 0))
            return rc; /* not even memory of one's own */
        alone = alone || mine != 0;
    }
}

/* Begins to send `mine` to one side, -1 the left or 1 the right, and to receive from the other. */
static int begin_shift(struct io_world *w, int side, const void *mine, void *theirs, size_t bytes,
                       struct stream_request requests[2])
{
    uint32_t right = (w->node + 1) % w->n_nodes, left = (w->node + w->n_nodes - 1) % w->n_nodes;
    int tag = side < 0 ? TAG_LEFT : TAG_RIGHT;
    struct stream_net *net = w->leaders;
    int rc = net->receive(net, theirs, bytes, side < 0 ? right : left, tag, &requests[0]);
    return rc ? rc : net->send(net, mine, bytes, side < 0 ? left : right, tag, &requests[1]);
}

static int finish_all(struct io_world *w, struct stream_request *requests, int n, int rc)
{
    for (int i = 0; i < n; i++)
        rc = world_finish(w, w->leaders, &requests[i], rc);
    return rc;
}

/* A connection counts if both ends have it; where there is none, leaders do without. */
static int make_lifeline(struct io_world *w)
{
    struct lifeline *l = &w->lifeline;
    struct world_opening *o = &w->opening;
    struct stream_request requests[4] = {{.active = 0}};
    lifeline_start(l);
    int rc = begin_shift(w, -1, &l->card, &o->right, sizeof o->right, requests);
    rc = finish_all(w, requests, 2, rc);
    if (!rc)
        lifeline_connect(l, &o->right, CALL_NS);
    o->have[0] = l->left >= 0;
    o->have[1] = l->right >= 0;
    if (!rc)
        rc = begin_shift(w, -1, &o->have[0], &o->theirs[1], sizeof o->theirs[1], requests);
    if (!rc)
        rc = begin_shift(w, 1, &o->have[1], &o->theirs[0], sizeof o->theirs[0], requests + 2);
    rc = finish_all(w, requests, 4, rc);
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

int world_join(struct io_world *w)
{
    int rc = make_nodes(w);
    rc = rc ? rc : make_leaders(w);
    if (!rc) { /* or else MPI may still have them */
        free(w->opening.marks);
        w->opening.marks = NULL;
    }
    return rc;
}
