/* brigade-file join and split: the same bytes as one plain file, or as parts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "store/store.h"
#include "io/tool.h"

#define CHUNK (4u << 20)

struct copy {
    struct store_token from_token, to_token;
    struct io_hints hints;
    struct io_store *from;
    uint32_t writers;
    char *chunk;
};

/* Bytes [at, end), written by writer `number`. */
static int stopped(const struct copy *c, struct brg_error *err)
{
    return tool_stopped() ? brg_error_set(err, -EINTR, "stopped: %s is as it was", c->to_token.path)
                          : 0;
}

static int copy_range(struct copy *c, uint32_t number, uint64_t at, uint64_t end,
                      struct brg_error *err)
{
    struct io_store *to;
    size_t got = 0;
    int rc = store_open(&c->to_token, &c->hints, number, NULL, &to, err);
    if (rc)
        return rc;
    while (!rc && at < end) {
        size_t n = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        rc = store_read(c->from, c->chunk, n, at, &got, err);
        if (!rc && got < n)
            rc = brg_error_set(err, -ENODATA, "%s became shorter", c->from_token.path);
        rc = rc ? rc : store_write(to, c->chunk, n, at, err);
        rc = rc ? rc : stopped(c, err);
        at += n;
        tool_progress(NULL, at, c->from_token.size);
    }
    rc = rc ? rc : store_end_call(to, 0, err);
    rc = rc ? rc : store_flush(to, err);
    /* The lock is for the end. */
    if (number == 0)
        c->to_token.lock = dup(c->to_token.lock);
    store_close(to);
    return rc;
}

static int publish(struct copy *c, struct brg_error *err)
{
    struct io_store *to;
    int rc = store_open(&c->to_token, &c->hints, 0, NULL, &to, err);
    if (rc)
        return rc;
    rc = store_settle(to, 1, c->from_token.size, err);
    rc = rc ? rc : store_publish(to, c->from_token.size, err);
    if (rc)
        store_discard(to);
    store_close(to);
    return rc;
}

static int copy_all(struct copy *c, struct brg_error *err)
{
    uint64_t size = c->from_token.size, block = c->to_token.stripe_bytes;
    uint64_t blocks = (size + block - 1) / block;
    int rc = 0;
    for (uint32_t i = 0; !rc && i < c->writers; i++) {
        uint64_t at = blocks * i / c->writers * block, end = blocks * (i + 1) / c->writers * block;
        rc = copy_range(c, i, at, end < size ? end : size, err);
    }
    rc = rc ? rc : stopped(c, err);
    if (rc) {
        store_abandon(&c->to_token);
        return rc;
    }
    return publish(c, err);
}

static int copy(const char *from, const char *to, enum io_layout layout, uint32_t writers)
{
    struct copy *c = calloc(1, sizeof *c);
    struct json j = {0};
    struct brg_error err;
    if (!c || !(c->chunk = malloc(CHUNK))) {
        brg_error_set(&err, -ENOMEM, "no memory to copy %s", from);
        free(c);
        return tool_error(&err);
    }
    hints_default(&c->hints);
    c->hints.verify = 1;
    c->hints.layout = layout;
    c->writers = writers;
    int rc = store_prepare(from, BRG_READ, &c->hints, NULL, &c->from_token, &err);
    rc = rc ? rc : store_open(&c->from_token, &c->hints, 0, NULL, &c->from, &err);
    rc = rc ? rc : store_prepare(to, BRG_WRITE | BRG_CREATE, &c->hints, NULL, &c->to_token, &err);
    rc = rc ? rc : copy_all(c, &err);
    if (c->from)
        store_close(c->from);
    json_add(&j, "{");
    tool_add_number(&j, "bytes", c->from_token.size);
    tool_add_string(&j, "file", c->to_token.path);
    json_add(&j, "}");
    if (!rc)
        json_print(&j, STDOUT_FILENO);
    free(j.text);
    free(c->chunk);
    free(c);
    return rc ? tool_error(&err) : 0;
}

int tool_join(char **words)
{
    return copy(words[0], words[1], IO_SHARED, 1);
}

int tool_split(char **words)
{
    return copy(words[0], words[1], IO_PARTS, (uint32_t)strtoul(words[2], NULL, 10));
}
