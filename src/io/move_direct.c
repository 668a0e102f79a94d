/* Each rank writes and reads its own bytes. */
#include <errno.h>

#include "base/error.h"
#include "io/move.h"

int move_write(const struct io_call *call, struct brg_error *err)
{
    struct io_cursor cursor;
    struct io_part part;
    int rc = 0;
    cursor_seek(&cursor, call->request, 0);
    while (!rc && cursor_next(&cursor, UINT64_MAX, &part))
        rc = drain_write(call->drain, part.memory, part.bytes, part.offset, err);
    return rc;
}

int move_read(const struct io_call *call, struct brg_error *err)
{
    struct io_cursor cursor;
    struct io_part part;
    int rc = 0;
    cursor_seek(&cursor, call->request, 0);
    while (!rc && cursor_next(&cursor, UINT64_MAX, &part)) {
        size_t got = 0;
        rc = store_read(call->store, part.memory, part.bytes, part.offset, &got, err);
        if (!rc && got < part.bytes) {
            rc = brg_error_set(err, -ENODATA, "the file ends before byte %llu",
                               (unsigned long long)(part.offset + part.bytes));
            if (err)
                err->offset = (int64_t)(part.offset + got);
        }
    }
    return rc;
}
