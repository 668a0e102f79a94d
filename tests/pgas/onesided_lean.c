/* What a one-sided call adds to the memory of a process that has touched its own bytes before.
 *
 *   onesided_lean BACK-END FOLDER WINDOW MIB
 *
 * Prints, for each rank, by how many KiB its peak grew while all wrote and read MIB each. */
#include <stdint.h>

#include "group.h"
#include "move/onesided.h"

static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *in = fopen("/proc/self/status", "r");
    while (in && fgets(line, sizeof line, in))
        if (sscanf(line, "VmHWM: %ld", &kib) == 1)
            break;
    if (in)
        fclose(in);
    return kib;
}

int main(int argc, char **argv)
{
    struct test_group g;
    struct onesided *o;
    struct brg_error err = {0};
    struct io_hints hints;
    struct store_token token;
    struct hull behind = {0, 0};
    struct onesided_call call = {.hints = &hints, .behind = &behind};
    struct io_request request;
    char path[4096];
    group_open(&g, argv + 1, 1 << 20);
    char **words = argv + 1 + g.used;
    size_t bytes = (size_t)(argc > 4 ? atoi(words[2]) : 1) << 20;
    char *memory = malloc(bytes);
    memset(memory, 1, bytes);
    snprintf(path, sizeof path, "%s/lean", words[0]);
    hints_default(&hints);
    brg_piece piece = {.offset = g.pgas->rank * bytes, .bytes = bytes};
    if (hints_parse(&hints, "sync=no:checksums=no:transport=simple:writers=2", &err) ||
        (g.pgas->rank == 0 &&
         store_prepare(path, BRG_WRITE | BRG_CREATE, &hints, NULL, &token, &err)) ||
        g.pgas->broadcast(g.pgas, &token, sizeof token, 0, &err) ||
        store_open(&token, &hints, g.pgas->rank, NULL, &call.store, &err) ||
        drain_open(call.store, &hints, &call.drain, &err) ||
        request_of_pieces(&request, &piece, 1, memory, &err))
        group_die("open", &err);
    long before = peak_kib();
    if (onesided_open(g.pgas, strtoull(words[1], NULL, 10), &o, &err))
        group_die("windows", &err);
    call.o = o;
    call.request = &request;
    call.place.stripe_bytes = token.stripe_bytes;
    if (onesided_write(&call, &call.size, &err))
        group_die("write", &err);
    if (onesided_read(&call, &call.size, &err))
        group_die("read", &err);
    printf("%ld\n", peak_kib() - before);
    fflush(stdout);
    onesided_close(o);
    drain_close(call.drain);
    if (g.pgas->rank == 0)
        store_discard(call.store);
    store_close(call.store);
    request_destroy(&request);
    group_end(&g, 0);
}
