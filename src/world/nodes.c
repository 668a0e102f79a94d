/* See nodes.h. */
#include "world/nodes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stream/address.h"

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ at[i]) * UINT64_C(1099511628211);
    return hash;
}

static uint64_t mix_file(uint64_t hash, const char *path)
{
    char text[64] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text);
    if (fd >= 0)
        close(fd);
    return mix(hash, text, n > 0 ? (size_t)n : 0);
}

static uint64_t mix_device(uint64_t hash, const char *path)
{
    struct stat st;
    uint64_t numbers[2] = {0, 0};
    if (stat(path, &st) == 0) {
        numbers[0] = st.st_dev;
        numbers[1] = st.st_ino;
    }
    return mix(hash, numbers, sizeof numbers);
}

static uint64_t find_place(void)
{
    char host[256] = "";
    uint64_t hash = UINT64_C(14695981039346656037);
    gethostname(host, sizeof host - 1);
    hash = mix(hash, host, strlen(host));
    hash = mix_file(hash, "/proc/sys/kernel/random/boot_id");
    hash = mix_device(hash, "/proc/self/ns/pid");
    return mix_device(hash, "/dev/shm") | 1;
}

void node_mark_self(struct node_mark *mark)
{
    static _Atomic uint64_t place; /* looking takes as long as a message between ranks */
    if (!place)
        place = find_place();
    mark->place = place;
    address_of_slurm(mark->address);
}

struct placed_rank {
    uint64_t place;
    uint32_t rank;
};

static int by_place(const void *a, const void *b)
{
    const struct placed_rank *left = a, *right = b;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* node_of by first ranks; first[node] is that rank. */
static uint32_t number_by_rank(const struct node_mark *marks, uint32_t size,
                               struct placed_rank *sorted, uint32_t *node_of, uint32_t *first)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < size; i++)
        sorted[i] = (struct placed_rank){.place = marks[i].place, .rank = i};
    qsort(sorted, size, sizeof *sorted, by_place);
    for (uint32_t i = 0; i < size; i++) { /* for now: the first rank of my node */
        int same = i && sorted[i].place && sorted[i].place == sorted[i - 1].place;
        node_of[sorted[i].rank] = same ? node_of[sorted[i - 1].rank] : sorted[i].rank;
    }
    for (uint32_t rank = 0; rank < size; rank++) {
        if (node_of[rank] == rank) {
            first[n] = rank;
            node_of[rank] = n++;
        } else
            node_of[rank] = node_of[node_of[rank]];
    }
    return n;
}

int64_t nodes_number(const struct node_mark *marks, uint32_t size, uint32_t *node_of)
{
    struct placed_rank *sorted = malloc(size * sizeof *sorted);
    uint32_t *first = malloc(size * sizeof *first), *order = malloc(size * sizeof *order);
    char *addresses = NULL;
    int64_t n = -ENOMEM;
    if (sorted && first && order)
        n = number_by_rank(marks, size, sorted, node_of, first);
    if (n > 0)
        addresses = calloc((size_t)n, ORDER_ADDRESS_BYTES);
    for (uint32_t i = 0; addresses && i < n; i++)
        memcpy(addresses + (size_t)i * ORDER_ADDRESS_BYTES, marks[first[i]].address,
               ORDER_ADDRESS_BYTES);
    if (addresses && address_order(addresses, (uint32_t)n, order) == 0) {
        for (uint32_t place = 0; place < n; place++)
            first[order[place]] = place;
        for (uint32_t rank = 0; rank < size; rank++)
            node_of[rank] = first[node_of[rank]];
    }
    free(addresses);
    free(sorted);
    free(first);
    free(order);
    return n;
}
