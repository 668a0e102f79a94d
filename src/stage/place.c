/* See place.h. Each node tells rank 0 its name and the address that Slurm gave it
 * (SLURM_TOPOLOGY_ADDR, "spine.leaf.node"); rank 0 looks into the file, if there is one, orders the
 * ranks (stream/order.h), and tells all. */
#include "stage/place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stage/put.h"
#include "stage/topology.h"
#include "stream/address.h"
#include "stream/placed.h"

struct place_node {
    char host[64];
    char address[ORDER_ADDRESS_BYTES]; /* with the node's own name behind the last dot, or "" */
};

static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value ? value : "";
}

static void describe_node(struct place_node *node)
{
    memset(node, 0, sizeof *node);
    if (*value_of("SLURMD_NODENAME"))
        snprintf(node->host, sizeof node->host, "%s", value_of("SLURMD_NODENAME"));
    else
        gethostname(node->host, sizeof node->host - 1);
    address_of_slurm(node->address);
}

static int addresses_of_file(const char *path, const struct place_node *nodes, uint32_t n,
                             char *addresses, struct brg_error *err)
{
    struct topology t;
    int rc = topology_read(&t, path, err);
    for (uint32_t i = 0; i < n && !rc; i++)
        rc = topology_address(&t, nodes[i].host, addresses + (size_t)i * ORDER_ADDRESS_BYTES,
                              ORDER_ADDRESS_BYTES, err);
    topology_free(&t);
    return rc;
}

/* On rank 0. order is that of the ranks; it stays so if nothing better is known. */
static void find_order(struct put *p, const struct place_node *nodes, uint32_t *order)
{
    uint32_t n = p->net->size;
    const char *file = p->options->topology;
    char *addresses = calloc(n, ORDER_ADDRESS_BYTES);
    uint32_t *better = malloc(n * sizeof *better);
    struct brg_error err;
    int rc = !addresses || !better ? -1 : 0;
    if (!rc && file) {
        rc = addresses_of_file(file, nodes, n, addresses, &err);
        if (rc)
            snprintf(p->placed.warning, sizeof p->placed.warning, "%s", err.text);
        if (!rc)
            rc = order_by_address(addresses, n, better);
    } else if (!rc) {
        for (uint32_t i = 0; i < n; i++)
            memcpy(addresses + (size_t)i * ORDER_ADDRESS_BYTES, nodes[i].address,
                   ORDER_ADDRESS_BYTES);
        rc = address_order(addresses, n, better);
    }
    if (!rc) {
        p->placed.from = file ? "file" : "slurm";
        p->placed.before = order_crossings(addresses, order, n, ORDER_LEVELS);
        memcpy(order, better, n * sizeof *better);
        p->placed.crossings = order_crossings(addresses, order, n, ORDER_LEVELS);
    }
    free(addresses);
    free(better);
}

/* Everybody's name and address to rank 0, its order to everybody. */
static void exchange(struct put *p, struct place_node *all, uint32_t *order)
{
    struct place_node mine;
    struct stream_request request = {0};
    describe_node(&mine);
    put_wait(p, p->net->gather(p->net, &mine, sizeof mine, all, &request), &request);
    for (uint32_t i = 0; i < p->net->size; i++)
        order[i] = i;
    if (p->stuck)
        return;
    if (all)
        find_order(p, all, order);
    put_broadcast(p, order, p->net->size * sizeof *order, 0);
}

void put_place(struct put *p)
{
    uint32_t n = p->net->size;
    struct stream_net *placed;
    if (n < 2 || (p->options->topology && strcmp(p->options->topology, "none") == 0))
        return;
    struct place_node *all = p->net->rank ? NULL : calloc(n, sizeof *all);
    uint32_t *order = malloc(n * sizeof *order);
    int rc = !order || (!p->net->rank && !all) ? -ENOMEM : 0;
    p->stuck = rc != 0; /* the others wait for a message that does not come */
    if (!rc)
        exchange(p, all, order);
    if (!rc && !p->stuck)
        rc = placed_create(p->net, order, &placed);
    if (rc)
        put_fail_text(p, rc, "cannot order %" PRIu32 " nodes", n);
    if (p->stuck)
        return; /* messages may be under way: what they go to stays */
    if (!rc)
        p->net = placed;
    free(all);
    free(order);
}

void put_unplace(struct put *p)
{
    if (p->net != p->own_net)
        placed_destroy(p->net);
    p->net = p->own_net;
}
