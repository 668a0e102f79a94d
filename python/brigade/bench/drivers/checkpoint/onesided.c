/* libbrigade_shmemio over MPI's ranks: collective calls on a view of the rank's block. */
#include "cell.h" /* mpi.h before brigade/shmemio.h, which then has SHMEM_Comm_of_mpi */

#include <string.h>

#include "brigade/shmemio.h"

static int failed(struct outcome *outcome)
{
    return outcome_fail(outcome, "%s", SHMEM_Last_error()->text);
}

/* The cell's hints, "key=value:key=value". */
static int info_of(const struct cell *cell, SHMEM_Info *info)
{
    char text[sizeof cell->hints], *rest = NULL;
    if (SHMEM_Info_create(info))
        return -1;
    memcpy(text, cell->hints, sizeof text);
    for (char *word = strtok_r(text, ":", &rest); word; word = strtok_r(NULL, ":", &rest)) {
        char *value = strchr(word, '=');
        if (value)
            *value++ = '\0';
        if (value && SHMEM_Info_set(*info, word, value))
            return -1;
    }
    return 0;
}

static int set_view(SHMEM_File f, const struct block *b, SHMEM_Datatype element)
{
    SHMEM_Count shape[MAX_DIMS], start[MAX_DIMS], count[MAX_DIMS];
    SHMEM_Datatype view;
    for (int d = 0; d < b->ndims; d++) {
        shape[d] = (SHMEM_Count)b->shape[d];
        start[d] = (SHMEM_Count)b->start[d];
        count[d] = (SHMEM_Count)b->count[d];
    }
    int rc =
        SHMEM_Type_create_subarray_c(b->ndims, shape, count, start, SHMEM_ORDER_C, element, &view);
    if (rc)
        return rc;
    SHMEM_Type_commit(&view);
    rc = SHMEM_File_set_view(f, (SHMEM_Offset)b->offset, element, view, "native", SHMEM_INFO_NULL);
    SHMEM_Type_free(&view);
    return rc;
}

static int move(const struct cell *cell, SHMEM_File f, int writing, char *buf)
{
    int rc = 0;
    for (int call = 0; call < cell_calls(cell) && !rc; call++) {
        struct block b;
        SHMEM_Datatype element;
        SHMEM_Offset offset = 0;
        cell_block(cell, call, &b);
        SHMEM_Type_contiguous((SHMEM_Count)b.element, SHMEM_BYTE, &element);
        SHMEM_Type_commit(&element);
        if (b.ndims == 1)
            offset = (SHMEM_Offset)(b.offset + b.start[0] * b.element);
        else
            rc = set_view(f, &b, element);
        SHMEM_Count n = (SHMEM_Count)(b.bytes / b.element);
        if (!rc)
            rc = writing ? SHMEM_File_write_at_all(f, offset, buf, n, element, SHMEM_STATUS_IGNORE)
                         : SHMEM_File_read_at_all(f, offset, buf, n, element, SHMEM_STATUS_IGNORE);
        SHMEM_Type_free(&element);
        buf += b.bytes;
    }
    return rc;
}

static int run(const struct cell *cell, int writing, char *buf, struct outcome *outcome)
{
    SHMEM_File f;
    SHMEM_Info info;
    int mode = writing ? SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY : SHMEM_MODE_RDONLY;
    if (info_of(cell, &info) ||
        SHMEM_File_open(SHMEM_Comm_of_mpi(cell->comm), cell->path, mode, info, &f))
        return failed(outcome);
    SHMEM_Info_free(&info);
    outcome_lap(outcome, OPEN);
    if (move(cell, f, writing, buf))
        return failed(outcome);
    outcome_lap(outcome, MOVE);
    strncat(outcome->note, SHMEM_File_explain(f), sizeof outcome->note - 1);
    if ((writing && cell->sync && SHMEM_File_sync(f)) || SHMEM_File_close(&f))
        return failed(outcome);
    outcome_lap(outcome, CLOSE);
    return 0;
}

static int onesided_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    return run(cell, 1, (char *)buf, outcome);
}

static int onesided_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    return run(cell, 0, buf, outcome);
}

const struct back_end back_end_onesided = {
    .name = "onesided", .write = onesided_write, .read = onesided_read};
