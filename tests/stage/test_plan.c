/* The plan keeps its promises for 1 to 64 nodes and 1 to 8 readers: a ring is simulated with
 * rendezvous semantics (a segment moves only when both ends are ready for exactly that one). */
#include "claim.h"
#include "stream/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 64
#define MAX_SEGMENTS 200

/* One node of the simulated ring. */
struct node {
    struct plan_walk in, out;
    uint32_t want, give; /* next segment on the link from the left, and to the right */
    unsigned char holds[MAX_SEGMENTS];
    unsigned char received[MAX_SEGMENTS];
    uint32_t used_slots; /* by segments in transit that were received and not yet handed on */
};

static struct node nodes[MAX_NODES];

/* Only what must be handed on occupies a slot for longer than a step: consuming never waits
 * for another node. */
static int link_can_move(const struct plan *plan, uint32_t from)
{
    const struct node *a = &nodes[from], *b = &nodes[(from + 1) % plan->n_nodes];
    return a->give != PLAN_END && a->holds[a->give] && b->used_slots < PLAN_TRANSIT_SLOTS;
}

static void move(const struct plan *plan, uint32_t from)
{
    uint32_t to = (from + 1) % plan->n_nodes;
    struct node *a = &nodes[from], *b = &nodes[to];
    uint32_t segment = a->give;
    CHECK(b->want == segment, "link %u: sends %u, receiver waits for %u", from, segment, b->want);
    a->give = plan_walk_next(&a->out);
    b->want = plan_walk_next(&b->in);
    if (plan_distance(plan, plan_flow_of(plan, segment), from) > 0)
        a->used_slots--;
    b->received[segment]++;
    b->holds[segment] = 1;
    if (plan_forwards(plan, to, segment))
        b->used_slots++;
}

static void start(const struct plan *plan)
{
    memset(nodes, 0, sizeof nodes);
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        plan_walk_start(&nodes[i].out, plan, i);
        plan_walk_start(&nodes[i].in, plan, (i + plan->n_nodes - 1) % plan->n_nodes);
        nodes[i].give = plan_walk_next(&nodes[i].out);
        nodes[i].want = plan_walk_next(&nodes[i].in);
        uint32_t f = plan_flow_at(plan, i);
        if (f == PLAN_END)
            continue;
        for (uint32_t k = 0; k < plan->flows[f].count; k++)
            nodes[i].holds[plan_segment(&plan->flows[f], k)] = 1;
    }
}

/* All links that can move do so at once. Returns the number of steps until nothing moves. */
static uint32_t run_in_step(const struct plan *plan)
{
    unsigned char ready[MAX_NODES];
    uint32_t steps = 0;
    for (;; steps++) {
        int any = 0;
        for (uint32_t i = 0; i < plan->n_nodes; i++)
            any |= ready[i] = (unsigned char)link_can_move(plan, i);
        if (!any)
            return steps;
        for (uint32_t i = 0; i < plan->n_nodes; i++)
            if (ready[i])
                move(plan, i);
    }
}

/* Links move one at a time in a random order: every interleaving must get to the end. */
static void run_at_random(const struct plan *plan)
{
    for (;;) {
        uint32_t able[MAX_NODES], n = 0;
        for (uint32_t i = 0; i < plan->n_nodes; i++)
            if (link_can_move(plan, i))
                able[n++] = i;
        if (n == 0)
            return;
        move(plan, able[(uint32_t)rand() % n]);
    }
}

static void check_complete(const struct plan *plan, const char *how)
{
    for (uint32_t i = 0; i < plan->n_nodes; i++)
        for (uint32_t s = 0; s < plan->n_segments; s++) {
            int own = plan_distance(plan, plan_flow_of(plan, s), i) == 0;
            CHECK(nodes[i].received[s] == !own, "%s: n=%u r=%u S=%u: node %u got segment %u %d x",
                  how, plan->n_nodes, plan->n_flows, plan->n_segments, i, s, nodes[i].received[s]);
        }
}

static void check_one_segment_one_reader(const struct plan *plan)
{
    unsigned char readers[MAX_SEGMENTS] = {0};
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t f = 0; f < plan->n_flows; f++) {
        const struct plan_flow *flow = &plan->flows[f];
        for (uint32_t k = 0; k < flow->count; k++) {
            uint32_t segment = plan_segment(flow, k);
            CHECK(segment < plan->n_segments, "flow %u has segment %u", f, segment);
            readers[segment]++;
            CHECK(plan_flow_of(plan, segment) == f, "segment %u is of flow %u", segment, f);
        }
        least = flow->count < least ? flow->count : least;
        most = flow->count > most ? flow->count : most;
        CHECK(plan_flow_at(plan, flow->origin) == f, "two flows at one node");
    }
    for (uint32_t s = 0; s < plan->n_segments; s++)
        CHECK(readers[s] == 1, "segment %u has %u readers", s, readers[s]);
    CHECK(most - least <= 1, "readers have %u to %u segments", least, most);
}

static void check_times(const struct plan *plan)
{
    for (uint32_t i = 0; i < plan->n_nodes; i++) {
        struct plan_walk walk;
        uint64_t last = UINT64_MAX;
        plan_walk_start(&walk, plan, i);
        for (uint32_t s; (s = plan_walk_next(&walk)) != PLAN_END;) {
            uint64_t time = plan_time(plan, i, s);
            CHECK(last == UINT64_MAX || time > last, "n=%u r=%u: link %u: %u at time %u after %u",
                  plan->n_nodes, plan->n_flows, i, s, (unsigned)time, (unsigned)last);
            last = time;
        }
    }
}

static void every_node_gets_every_segment_once_without_deadlock_in_few_steps(void)
{
    static const uint32_t counts[] = {0, 1, 2, 3, 5, 8, 31, 64, 200};
    double worst = 0;
    for (uint32_t n = 1; n <= MAX_NODES; n++)
        for (uint32_t r = 1; r <= 8 && r <= n; r++)
            for (uint32_t c = 0; c < sizeof counts / sizeof *counts; c++) {
                struct plan plan;
                uint32_t segments = counts[c];
                CHECK(plan_spread(&plan, n, r, segments) == 0, "n=%u", n);
                check_one_segment_one_reader(&plan);
                check_times(&plan);
                start(&plan);
                uint32_t steps = run_in_step(&plan);
                check_complete(&plan, "in step");
                CHECK(steps <= segments + n + 2 * r, "n=%u r=%u S=%u: %u steps", n, r, segments,
                      steps);
                if (segments == 200 && n > 1 && (double)steps / (segments + n - 2) > worst)
                    worst = (double)steps / (segments + n - 2);
                start(&plan);
                run_at_random(&plan);
                check_complete(&plan, "at random");
            }
    printf("200 segments: at most %.3f of (segments + nodes - 2) steps\n", worst);
}

static void when_everybody_reads_the_number_of_steps_is_the_least_possible(void)
{
    for (uint32_t n = 2; n <= 8; n++) {
        struct plan plan;
        plan_spread(&plan, n, n, 10 * n);
        start(&plan);
        uint32_t steps = run_in_step(&plan);
        CHECK(steps == 10 * (n - 1), "n=%u: %u steps, least is %u", n, steps, 10 * (n - 1));
    }
}

/* The other direction: every node but the writer sends its own records along the chain. */
static void flows_of_unequal_length_that_end_at_one_writer_arrive_too(void)
{
    for (uint32_t n = 2; n <= 16; n++) {
        struct plan plan = {.n_nodes = n, .n_flows = n - 1, .period = n - 1};
        plan.n_segments = 5 * (n - 1);
        for (uint32_t f = 0; f < n - 1; f++) /* node f+1 .. n-1 send to node 0 */
            plan.flows[f] = (struct plan_flow){
                .origin = f + 1, .hops = n - 1 - f, .first = 5 * f, .count = 5, .stride = 1};
        start(&plan);
        run_in_step(&plan);
        for (uint32_t s = 0; s < plan.n_segments; s++)
            CHECK(nodes[0].received[s] == 1, "n=%u: writer got segment %u %d x", n, s,
                  nodes[0].received[s]);
    }
}

static void a_cut_never_goes_through_a_piece_and_keeps_to_the_limit(void)
{
    for (int round = 0; round < 2000; round++) {
        uint64_t ends[50], at = 0, limit = 1 + (uint64_t)rand() % 100;
        uint32_t firsts[50], n = (uint32_t)rand() % 51;
        for (uint32_t i = 0; i < n; i++)
            ends[i] = at += 1 + (uint64_t)rand() % 60;
        uint32_t cuts = plan_cut(ends, n, limit, firsts);
        CHECK(n == 0 ? cuts == 0 : cuts > 0 && firsts[0] == 0, "the first piece starts a segment");
        for (uint32_t c = 0; c < cuts; c++) {
            uint32_t first = firsts[c], stop = c + 1 < cuts ? firsts[c + 1] : n;
            uint64_t bytes = ends[stop - 1] - (first ? ends[first - 1] : 0);
            CHECK(stop > first, "segment %u is empty", c);
            CHECK(bytes <= limit || stop == first + 1, "segment of %llu bytes, limit %llu",
                  (unsigned long long)bytes, (unsigned long long)limit);
            if (stop < n)
                CHECK(bytes + ends[stop] - ends[stop - 1] > limit, "piece %u fitted too", stop);
        }
    }
}

int main(void)
{
    srand(1);
    every_node_gets_every_segment_once_without_deadlock_in_few_steps();
    when_everybody_reads_the_number_of_steps_is_the_least_possible();
    flows_of_unequal_length_that_end_at_one_writer_arrive_too();
    a_cut_never_goes_through_a_piece_and_keeps_to_the_limit();
    struct plan plan;
    CHECK(plan_spread(&plan, 0, 1, 1) != 0, "no nodes");
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
