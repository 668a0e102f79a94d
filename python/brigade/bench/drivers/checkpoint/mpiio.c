/* MPI-IO, whichever the MPI has: collective calls on a view of the rank's block. */
#include <stdio.h>
#include <string.h>

#include "cell.h"

static int failed(struct outcome *outcome, const char *call, int code)
{
    char text[MPI_MAX_ERROR_STRING];
    int n = 0;
    MPI_Error_string(code, text, &n);
    return outcome_fail(outcome, "%s: %.*s", call, n, text);
}

/* The cell's hints, "key=value:key=value", as MPI knows them. */
static MPI_Info info_of(const struct cell *cell)
{
    MPI_Info info;
    char text[sizeof cell->hints], *rest = NULL;
    MPI_Info_create(&info);
    memcpy(text, cell->hints, sizeof text);
    for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(word, '=');
        if (value) {
            *value = '\0';
            MPI_Info_set(info, word, value + 1);
        }
    }
    return info;
}

static int set_view(MPI_File f, const struct block *b, MPI_Datatype element)
{
    int shape[MAX_DIMS], start[MAX_DIMS], count[MAX_DIMS];
    MPI_Datatype view;
    for (int d = 0; d < b->ndims; d++) {
        shape[d] = (int)b->shape[d];
        start[d] = (int)b->start[d];
        count[d] = (int)b->count[d];
    }
    MPI_Type_create_subarray(b->ndims, shape, count, start, MPI_ORDER_C, element, &view);
    MPI_Type_commit(&view);
    int rc = MPI_File_set_view(f, (MPI_Offset)b->offset, element, view, "native", MPI_INFO_NULL);
    MPI_Type_free(&view);
    return rc;
}

static int move(const struct cell *cell, MPI_File f, int writing, char *buf)
{
    int rc = MPI_SUCCESS;
    for (int call = 0; call < cell_calls(cell) && rc == MPI_SUCCESS; call++) {
        struct block b;
        MPI_Datatype element;
        MPI_Offset offset = 0;
        cell_block(cell, call, &b);
        MPI_Type_contiguous((int)b.element, MPI_BYTE, &element);
        MPI_Type_commit(&element);
        if (b.ndims == 1)
            offset = (MPI_Offset)(b.offset + b.start[0] * b.element);
        else
            rc = set_view(f, &b, element);
        int n = (int)(b.bytes / b.element);
        if (rc == MPI_SUCCESS)
            rc = writing ? MPI_File_write_at_all(f, offset, buf, n, element, MPI_STATUS_IGNORE)
                         : MPI_File_read_at_all(f, offset, buf, n, element, MPI_STATUS_IGNORE);
        MPI_Type_free(&element);
        buf += b.bytes;
    }
    return rc;
}

static int run(const struct cell *cell, int writing, char *buf, struct outcome *outcome)
{
    MPI_File f;
    MPI_Info info = info_of(cell);
    int mode = writing ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY;
    int rc = MPI_File_open(cell->comm, cell->path, mode, info, &f);
    MPI_Info_free(&info);
    if (rc != MPI_SUCCESS)
        return failed(outcome, "MPI_File_open", rc);
    outcome_lap(outcome, OPEN);
    rc = move(cell, f, writing, buf);
    if (rc != MPI_SUCCESS)
        return failed(outcome, writing ? "MPI_File_write_at_all" : "MPI_File_read_at_all", rc);
    outcome_lap(outcome, MOVE);
    if (writing && cell->sync && (rc = MPI_File_sync(f)) != MPI_SUCCESS)
        return failed(outcome, "MPI_File_sync", rc);
    if ((rc = MPI_File_close(&f)) != MPI_SUCCESS)
        return failed(outcome, "MPI_File_close", rc);
    outcome_lap(outcome, CLOSE);
    return 0;
}

static int mpiio_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    return run(cell, 1, (char *)buf, outcome);
}

static int mpiio_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    return run(cell, 0, buf, outcome);
}

const struct back_end back_end_mpiio = {.name = "mpiio", .write = mpiio_write, .read = mpiio_read};
