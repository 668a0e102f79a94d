/* libbrigade_io. The hints of the cell are its own. */
#include "cell.h" /* mpi.h before brigade/io.h, which then has brg_file_open */

#include <stdio.h>
#include <string.h>

#include "brigade/io.h"

static int failed(struct outcome *outcome, const struct brg_error *err)
{
    return outcome_fail(outcome, "%s", err->text);
}

static int move(const struct cell *cell, brg_file *f, int writing, char *buf, struct brg_error *err)
{
    int rc = 0;
    for (int call = 0; call < cell_calls(cell) && !rc; call++) {
        struct block b;
        cell_block(cell, call, &b);
        if (b.ndims == 1) {
            uint64_t offset = b.offset + b.start[0] * b.element;
            rc = writing ? brg_file_write(f, offset, buf, b.bytes, err)
                         : brg_file_read(f, offset, buf, b.bytes, err);
        } else {
            rc = writing ? brg_file_write_block(f, b.offset, b.element, b.ndims, b.shape, b.start,
                                                b.count, NULL, buf, err)
                         : brg_file_read_block(f, b.offset, b.element, b.ndims, b.shape, b.start,
                                               b.count, NULL, buf, err);
        }
        buf += b.bytes;
    }
    return rc;
}

static int brigade_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    struct brg_error err = {0};
    char hints[sizeof cell->hints + 16];
    brg_file *f;
    snprintf(hints, sizeof hints, "%s%ssync=%s", cell->hints, *cell->hints ? ":" : "",
             cell->sync ? "yes" : "no");
    if (brg_file_open(cell->comm, cell->path, BRG_WRITE | BRG_CREATE, hints, &f, &err))
        return failed(outcome, &err);
    outcome_lap(outcome, OPEN);
    int rc = move(cell, f, 1, (char *)buf, &err);
    outcome_lap(outcome, MOVE);
    if (!rc) {
        snprintf(outcome->note, sizeof outcome->note, "%s", brg_file_explain(f));
        rc = brg_file_commit(f, &err);
    }
    if (brg_file_close(f, rc ? NULL : &err) != 0 || rc)
        return failed(outcome, &err);
    outcome_lap(outcome, CLOSE);
    return 0;
}

static int brigade_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    struct brg_error err = {0};
    brg_file *f;
    if (brg_file_open(cell->comm, cell->path, BRG_READ, cell->hints, &f, &err))
        return failed(outcome, &err);
    outcome_lap(outcome, OPEN);
    int rc = move(cell, f, 0, buf, &err);
    outcome_lap(outcome, MOVE);
    if (brg_file_close(f, rc ? NULL : &err) != 0 || rc)
        return failed(outcome, &err);
    outcome_lap(outcome, CLOSE);
    return 0;
}

const struct back_end back_end_brigade = {
    .name = "brigade", .write = brigade_write, .read = brigade_read};
