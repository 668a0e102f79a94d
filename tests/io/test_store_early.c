/* Two ranks of one file, in one process, in every order in which one could come before the other:
 * what one noted of bytes that were written once more is not kept. */
#include "claim.h"
#include "store/store.h"
#include "store/store_inside.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BLOCK = 64 << 10
};

static char folder[64], path[96], ones[2 * BLOCK], twos[2 * BLOCK];
static char memory[STORE_PAGE], *page; /* NULL: what the two tell each other lies in a file */
static struct brg_error err;

#define DO(call) CHECK((call) == 0, "%s", err.text)

static void write_again(struct io_store *store, const char *bytes, size_t n)
{
    store_begin_call(store);
    DO(store_write(store, bytes, n, 0, &err));
    CHECK(store->sums && (uintptr_t)store->sums % _Alignof(XXH3_state_t) == 0,
          "xxHash may store there with what needs it so");
}

static int damaged(void)
{
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    static char buf[2 * BLOCK];
    size_t got = 0;
    hints_default(&hints);
    hints.verify = 1;
    DO(store_prepare(path, BRG_READ, &hints, page, &token, &err));
    DO(store_open(&token, &hints, 0, page, &store, &err));
    int rc = store_read(store, buf, sizeof buf, 0, &got, &err);
    store_close(store);
    return rc || got != sizeof buf || memcmp(buf, twos, sizeof buf) != 0;
}

/* `late`: which of the two ends its call last. */
static void of_an_overlap_the_sums_are_those_of_who_wrote_last(int late)
{
    struct io_hints hints;
    struct store_token token;
    struct io_store *store[2];
    hints_default(&hints);
    hints.stripe_bytes = BLOCK;
    hints.sync = 0;
    memset(memory, 0, sizeof memory);
    DO(store_prepare(path, BRG_WRITE | BRG_CREATE, &hints, page, &token, &err));
    for (unsigned r = 0; r < 2; r++)
        DO(store_open(&token, &hints, r, page, &store[r], &err));
    CHECK(store_may_early(store[0], sizeof ones, 0), "two blocks have room");
    DO(store_write_early(store[0], ones, sizeof ones, 0, &err));
    DO(store_write_early(store[1], twos, sizeof twos, 0, &err));
    for (int r = 0; r < 2; r++)
        DO(store_end_early(store[r], STORE_AGAIN, 0, &err));
    store_begin_call(store[0]);
    write_again(store[1], twos, sizeof twos);
    for (int i = 0; i < 2; i++)
        DO(store_end_call(store[i == late ? 1 : 0], sizeof twos, &err));
    for (unsigned r = 0; r < 2; r++)
        DO(store_flush(store[r], &err));
    for (unsigned r = 0; r < 2; r++)
        DO(store_settle(store[r], 2, sizeof twos, &err));
    DO(store_publish(store[0], sizeof twos, &err));
    store_close(store[1]);
    store_close(store[0]);
    CHECK(!damaged(), "rank %d ended last: %s", late, err.text);
}

int main(void)
{
    char sums[128];
    snprintf(folder, sizeof folder, "/tmp/brigade-early-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    memset(ones, 1, sizeof ones);
    memset(twos, 2, sizeof twos);
    for (int late = 0; late < 4; late++) {
        page = late / 2 ? memory : NULL;
        of_an_overlap_the_sums_are_those_of_who_wrote_last(late % 2);
    }
    unlink(path);
    snprintf(sums, sizeof sums, "%s.sums", path);
    unlink(sums);
    rmdir(folder);
    return failures != 0;
}
