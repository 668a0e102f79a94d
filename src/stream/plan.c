/* See plan.h for the schedule and for what must stay true. */
#include "stream/plan.h"

#include <errno.h>
#include <string.h>

static uint32_t smallest(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* With R < n readers a node that reads nothing receives all segments, so a flow may launch one
 * every R steps. When everybody reads, each link lacks one flow: R - 1. */
static uint32_t spread_period(uint32_t n_nodes, uint32_t n_readers)
{
    if (n_readers < n_nodes)
        return n_readers;
    return n_nodes > 1 ? n_nodes - 1 : 1;
}

/* Where node stands on the ring when a rest counts as a place of its own. */
static uint32_t place_of(const struct plan *plan, uint32_t node)
{
    return node + (uint32_t)((uint64_t)node * plan->rests / plan->n_nodes);
}

int plan_spread(struct plan *plan, uint32_t n_nodes, uint32_t n_readers, uint32_t n_segments)
{
    if (n_nodes == 0)
        return -EINVAL;
    n_readers = smallest(smallest(n_readers, n_nodes), smallest(n_segments, PLAN_MAX_FLOWS));
    if (n_readers == 0)
        n_readers = 1;
    memset(plan, 0, sizeof *plan);
    plan->n_nodes = n_nodes;
    plan->n_flows = n_readers;
    plan->n_segments = n_segments;
    plan->period = spread_period(n_nodes, n_readers);
    if (n_readers < n_nodes)
        plan->rests = (plan->period - n_nodes % plan->period) % plan->period;
    for (uint32_t f = 0; f < n_readers; f++) {
        struct plan_flow *flow = &plan->flows[f];
        flow->origin = (uint32_t)((uint64_t)f * n_nodes / n_readers);
        flow->hops = n_nodes - 1;
        flow->first = f;
        flow->stride = n_readers;
        flow->count = n_segments > f ? (n_segments - f - 1) / n_readers + 1 : 0;
        /* phase - place differs from flow to flow (mod period), so they never meet. When
         * everybody reads, equal phases already keep all apart. */
        if (n_readers < n_nodes)
            flow->phase = (place_of(plan, flow->origin) + f) % plan->period;
    }
    return 0;
}

uint32_t plan_flow_of(const struct plan *plan, uint32_t segment)
{
    for (uint32_t f = 0;; f++) {
        const struct plan_flow *flow = &plan->flows[f];
        uint32_t past = segment - flow->first;
        if (segment >= flow->first && past % flow->stride == 0 && past / flow->stride < flow->count)
            return f;
    }
}

uint32_t plan_flow_at(const struct plan *plan, uint32_t node)
{
    for (uint32_t f = 0; f < plan->n_flows; f++)
        if (plan->flows[f].origin == node)
            return f;
    return PLAN_END;
}

uint32_t plan_distance(const struct plan *plan, uint32_t flow, uint32_t node)
{
    uint32_t origin = plan->flows[flow].origin;
    return node >= origin ? node - origin : node + plan->n_nodes - origin;
}

int plan_forwards(const struct plan *plan, uint32_t node, uint32_t segment)
{
    uint32_t f = plan_flow_of(plan, segment);
    return plan_distance(plan, f, node) < plan->flows[f].hops;
}

static uint64_t flow_time(const struct plan *plan, uint32_t f, uint32_t node, uint32_t k)
{
    uint32_t origin = plan->flows[f].origin;
    uint32_t round = node >= origin ? 0 : plan->n_nodes + plan->rests;
    uint32_t steps = place_of(plan, node) + round - place_of(plan, origin);
    return (uint64_t)plan->period * k + plan->flows[f].phase + steps;
}

uint64_t plan_time(const struct plan *plan, uint32_t node, uint32_t segment)
{
    uint32_t f = plan_flow_of(plan, segment);
    return flow_time(plan, f, node, (segment - plan->flows[f].first) / plan->flows[f].stride);
}

void plan_walk_start(struct plan_walk *walk, const struct plan *plan, uint32_t node)
{
    walk->plan = plan;
    walk->node = node;
    memset(walk->next, 0, sizeof walk->next);
}

uint32_t plan_walk_next(struct plan_walk *walk)
{
    const struct plan *plan = walk->plan;
    uint32_t best = PLAN_END;
    uint64_t best_time = UINT64_MAX;
    for (uint32_t f = 0; f < plan->n_flows; f++) {
        const struct plan_flow *flow = &plan->flows[f];
        if (walk->next[f] == flow->count || plan_distance(plan, f, walk->node) >= flow->hops)
            continue;
        uint64_t time = flow_time(plan, f, walk->node, walk->next[f]);
        if (time < best_time) {
            best = f;
            best_time = time;
        }
    }
    if (best == PLAN_END)
        return PLAN_END;
    return plan_segment(&plan->flows[best], walk->next[best]++);
}

uint32_t plan_cut(const uint64_t *ends, uint32_t n_pieces, uint64_t limit, uint32_t *firsts)
{
    uint32_t n = 0;
    uint64_t start = 0; /* of the segment being filled */
    for (uint32_t i = 0; i < n_pieces; i++) {
        uint64_t piece_start = i ? ends[i - 1] : 0;
        if (i == 0 || ends[i] - start > limit) {
            firsts[n++] = i;
            start = piece_start;
        }
    }
    return n;
}
