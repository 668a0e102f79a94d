/* Who reads which segments, and how each segment goes hand to hand: arithmetic only.
 *
 * Nodes stand in a ring; node i hands to node i+1 and to no one else, so a node talks to two
 * neighbours whatever the width, and neighbours in the ring can be neighbours on the machine.
 * A *flow* is a row of segments that start at one node and travel some hops to the right.
 * Spreading a file is one flow per reader, each n-1 hops long; collecting records at a writer
 * is one flow per passer, each ending at the writer. All links work at the same time:
 *
 *      reader 0                 reader 1                one step = every node sends one
 *      [0]-->[1]-->[2]-->[3]-->[4]-->[5]-->[6]-->[7]    segment and receives one
 *       ^-----------------------------------------'
 *
 * Segment k of flow f leaves its origin at time  period*k + phase(f)  and crosses one link
 * after another, a step each; at a few nodes it rests one step more, so that the way round is
 * a multiple of the period. Without these rests two flows would meet on some link, delay each
 * other, and the delay would go round the ring and grow: up to 20% more steps. Every link
 * carries its segments in the order of their times. No table is stored: a walk merges the
 * flows of one link as it goes, and both ends of a link walk the same sequence.
 *
 * What must stay true (tests/stage/test_plan.c):
 * - no two segments have the same time on one link;
 * - therefore PLAN_TRANSIT_SLOTS buffers a node are enough that nothing ever waits in a
 *   circle: what must happen before a segment is received (the one that lay in its buffer
 *   went on, at most two steps after it came) always has a smaller time;
 * - spreading S segments from R readers to n nodes takes at most S + n + 2R steps; no schedule
 *   needs fewer than S - S/n.
 */
#ifndef BRG_STREAM_PLAN_H
#define BRG_STREAM_PLAN_H

#include <stdint.h>

#define PLAN_MAX_FLOWS 64u
#define PLAN_TRANSIT_SLOTS 3u
#define PLAN_END UINT32_MAX

struct plan_flow {
    uint32_t origin; /* node at which its segments start */
    uint32_t hops;   /* links it crosses; at most n_nodes - 1 */
    uint32_t first;  /* its segments are first, first + stride, ...: count of them */
    uint32_t count;
    uint32_t stride;
    uint32_t phase; /* time at which segment `first` leaves */
};

struct plan {
    uint32_t n_nodes, n_flows, n_segments;
    uint32_t period; /* time between two segments of one flow */
    uint32_t rests;  /* nodes, evenly spaced, at which a segment rests a step; below n_nodes */
    struct plan_flow flows[PLAN_MAX_FLOWS];
};

/* The segments that cross the link from `node` to its right neighbour, in order. */
struct plan_walk {
    const struct plan *plan;
    uint32_t node;
    uint32_t next[PLAN_MAX_FLOWS]; /* per flow: number of segments already walked */
};

/* Plan the spreading of n_segments over n_nodes. Readers are spaced evenly around the ring,
 * node 0 is the first; they take segments in turn, so that all arrive roughly in order.
 * n_readers is brought into 1..min(n_nodes, n_segments, PLAN_MAX_FLOWS). Returns 0, or -EINVAL
 * when n_nodes is 0. */
int plan_spread(struct plan *plan, uint32_t n_nodes, uint32_t n_readers, uint32_t n_segments);

/* The flow that segment belongs to. segment < n_segments. */
uint32_t plan_flow_of(const struct plan *plan, uint32_t segment);

/* The k-th segment of a flow. */
static inline uint32_t plan_segment(const struct plan_flow *flow, uint32_t k)
{
    return flow->first + k * flow->stride;
}

/* The flow that starts at node, or PLAN_END. Each node is the origin of at most one flow. */
uint32_t plan_flow_at(const struct plan *plan, uint32_t node);

/* Links between the origin of a flow and node, going right (rests not counted). */
uint32_t plan_distance(const struct plan *plan, uint32_t flow, uint32_t node);

/* Whether node hands segment on to its right neighbour. */
int plan_forwards(const struct plan *plan, uint32_t node, uint32_t segment);

/* Time of a segment on the link that leaves node, in steps. Only for segments it forwards. */
uint64_t plan_time(const struct plan *plan, uint32_t node, uint32_t segment);

/* Walk the link from node to node+1. plan_walk_next gives PLAN_END after the last segment. */
void plan_walk_start(struct plan_walk *walk, const struct plan *plan, uint32_t node);
uint32_t plan_walk_next(struct plan_walk *walk);

/* Cut a row of pieces into segments of at most `limit` bytes, never through a piece; a piece
 * larger than limit is a segment of its own. ends[i] is where piece i ends, counted from the
 * start of piece 0. Writes the number of the first piece of each segment to firsts (room for
 * n_pieces) and returns the number of segments. */
uint32_t plan_cut(const uint64_t *ends, uint32_t n_pieces, uint64_t limit, uint32_t *firsts);

#endif
