/* Every switch is entered once, at every level, whatever tree and whatever order of ranks; and a
 * net in that order sends to the ranks that stand there. */
#include "claim.h"
#include "stream/order.h"
#include "stream/placed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NODES 200u

static char addresses[MAX_NODES][ORDER_ADDRESS_BYTES];
static uint32_t order[MAX_NODES];

/* As it would be found by a hand: distinct beginnings, down to a level. */
static uint32_t count_switches(uint32_t n, uint32_t level)
{
    static char seen[MAX_NODES][ORDER_ADDRESS_BYTES];
    uint32_t count = 0, k;
    for (uint32_t i = 0; i < n; i++) {
        char text[ORDER_ADDRESS_BYTES] = "", *at = text;
        uint32_t dots = 0;
        for (const char *c = addresses[i]; *c; c++) {
            dots += *c == '.';
            if (dots == level)
                break;
            *at++ = *c;
        }
        for (k = 0; k < count && strcmp(seen[k], text) != 0; k++)
            ;
        if (k == count)
            strcpy(seen[count++], text);
    }
    return count;
}

static void check_order(uint32_t n, const char *what)
{
    unsigned char seen[MAX_NODES] = {0};
    CHECK(order_by_address(addresses[0], n, order) == 0, "%s", what);
    CHECK(order[0] == 0, "%s: rank 0 stands at place %u", what, order[0]);
    for (uint32_t i = 0; i < n; i++)
        CHECK(order[i] < n && !seen[order[i]]++, "%s: place %u", what, i);
    for (uint32_t level = 1; level <= ORDER_LEVELS; level++) {
        uint32_t switches = count_switches(n, level);
        uint32_t crossings = order_crossings(addresses[0], order, n, level);
        CHECK(crossings == (switches > 1 ? switches : 0), "%s, %u nodes, level %u: %u for %u", what,
              n, level, crossings, switches);
    }
}

static void test_random_trees(void)
{
    srand(7);
    for (uint32_t round = 0; round < 400; round++) {
        uint32_t n = 1 + (uint32_t)rand() % MAX_NODES, wide = 1 + (uint32_t)rand() % 6;
        for (uint32_t i = 0; i < n; i++) {
            uint32_t depth = (uint32_t)rand() % 5; /* some hang higher up, some nowhere */
            char *at = addresses[i];
            *at = '\0';
            for (uint32_t level = 0; level < depth; level++)
                at += sprintf(at, "%ss%u%s", level ? "." : "", (uint32_t)rand() % wide,
                              rand() % 3 ? "" : "-x"); /* '-' sorts before '.' */
        }
        check_order(n, "a random tree");
    }
}

static void test_what_is_in_order_stays(void)
{
    for (uint32_t i = 0; i < 64; i++)
        sprintf(addresses[i], "top.spine%u.leaf%u", 3 - i / 16, 15 - i / 4);
    check_order(64, "in order");
    for (uint32_t i = 0; i < 64; i++)
        CHECK(order[i] == i, "rank %u moved to %u", order[i], i);
}

static void test_nodes_dealt_in_turn_come_together(void)
{
    for (uint32_t i = 0; i < 8; i++)
        sprintf(addresses[i], "leaf%u", i % 2);
    check_order(8, "dealt in turn");
    for (uint32_t i = 0; i < 8; i++)
        CHECK(order[i] == (i < 4 ? 2 * i : 2 * (i - 4) + 1), "place %u: rank %u", i, order[i]);
}

/* ---- a net in that order ---- */

static uint32_t asked;

static int note_send(struct stream_net *net, const void *buf, size_t bytes, uint32_t to, int tag,
                     struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)tag, (void)request;
    asked = to;
    return 0;
}

static int note_receive(struct stream_net *net, void *buf, size_t bytes, uint32_t from, int tag,
                        struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)tag, (void)request;
    asked = from;
    return 0;
}

static int note_broadcast(struct stream_net *net, void *buf, size_t bytes, uint32_t root,
                          struct stream_request *request)
{
    (void)net, (void)buf, (void)bytes, (void)request;
    asked = root;
    return 0;
}

static void test_a_placed_net_speaks_to_who_stands_there(void)
{
    const uint32_t places[] = {0, 2, 4, 1, 3}, twice[] = {0, 2, 2, 1, 3}, other[] = {1, 0, 2, 3, 4};
    struct stream_net inner = {.rank = 4,
                               .size = 5,
                               .send = note_send,
                               .receive = note_receive,
                               .broadcast = note_broadcast};
    struct stream_net *net = NULL;
    CHECK(placed_create(&inner, twice, &net) == -EINVAL, "no permutation");
    CHECK(placed_create(&inner, other, &net) == -EINVAL, "rank 0 is elsewhere");
    CHECK(net == NULL && placed_create(&inner, places, &net) == 0, "a permutation");
    CHECK(net->rank == 2 && net->size == 5, "stands at %u", net->rank);
    for (uint32_t i = 0; i < 5; i++) {
        net->send(net, NULL, 0, i, 0, NULL);
        CHECK(asked == places[i], "sends to %u", asked);
        net->receive(net, NULL, 0, i, 0, NULL);
        CHECK(asked == places[i], "receives from %u", asked);
        net->broadcast(net, NULL, 0, i, NULL);
        CHECK(asked == places[i], "takes from %u", asked);
    }
    placed_destroy(net);
}

int main(void)
{
    test_random_trees();
    test_what_is_in_order_stays();
    test_nodes_dealt_in_turn_come_together();
    test_a_placed_net_speaks_to_who_stands_there();
    printf("%d failures\n", failures);
    return failures != 0;
}
