/* Parallel HDF5: one dataset of bytes, collective transfers. */
#ifdef WITH_HDF5
#include <hdf5.h>
#include <string.h>

#include "cell.h"

/* The dataset's dimensions: the calls, then the array's, the last in bytes. */
static int dimensions(const struct cell *cell, const struct block *b, int call, hsize_t *shape,
                      hsize_t *start, hsize_t *count)
{
    shape[0] = (hsize_t)cell->calls;
    start[0] = (hsize_t)call;
    count[0] = 1;
    for (int d = 0; d < b->ndims; d++) {
        uint64_t bytes = d == b->ndims - 1 ? b->element : 1;
        shape[d + 1] = b->shape[d] * bytes;
        start[d + 1] = b->start[d] * bytes;
        count[d + 1] = b->count[d] * bytes;
    }
    return b->ndims + 1;
}

static hid_t create(const struct cell *cell, hid_t file)
{
    struct block b;
    hsize_t shape[MAX_DIMS + 1], start[MAX_DIMS + 1], count[MAX_DIMS + 1];
    cell_block(cell, 0, &b);
    int ndims = dimensions(cell, &b, 0, shape, start, count);
    hid_t space = H5Screate_simple(ndims, shape, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    hid_t set = H5Dcreate2(file, "data", H5T_NATIVE_UINT8, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    return set;
}

static herr_t move(const struct cell *cell, hid_t set, int writing, char *buf)
{
    herr_t rc = 0;
    hid_t together = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(together, H5FD_MPIO_COLLECTIVE);
    for (int call = 0; call < cell->calls && rc >= 0; call++) {
        struct block b;
        hsize_t shape[MAX_DIMS + 1], start[MAX_DIMS + 1], count[MAX_DIMS + 1];
        cell_block(cell, call, &b);
        int ndims = dimensions(cell, &b, call, shape, start, count);
        hsize_t bytes = b.bytes;
        hid_t memory = H5Screate_simple(1, &bytes, NULL);
        hid_t space = H5Screate_simple(ndims, shape, NULL);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        rc = writing ? H5Dwrite(set, H5T_NATIVE_UINT8, memory, space, together, buf)
                     : H5Dread(set, H5T_NATIVE_UINT8, memory, space, together, buf);
        H5Sclose(space);
        H5Sclose(memory);
        buf += b.bytes;
    }
    H5Pclose(together);
    return rc;
}

static int run(const struct cell *cell, int writing, char *buf, struct outcome *outcome)
{
    if (cell->header)
        return outcome_fail(outcome, "HDF5 has no place for headers of ours");
    hid_t how = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_mpio(how, cell->comm, MPI_INFO_NULL);
    hid_t file = writing ? H5Fcreate(cell->path, H5F_ACC_TRUNC, H5P_DEFAULT, how)
                         : H5Fopen(cell->path, H5F_ACC_RDONLY, how);
    H5Pclose(how);
    hid_t set = file < 0 ? -1 : writing ? create(cell, file) : H5Dopen2(file, "data", H5P_DEFAULT);
    if (set < 0)
        return outcome_fail(outcome, "HDF5 cannot open %s", cell->path);
    outcome_lap(outcome, OPEN);
    herr_t rc = move(cell, set, writing, buf);
    outcome_lap(outcome, MOVE);
    if (writing && rc >= 0) {
        outcome->base = H5Dget_offset(set);
        if (cell->sync)
            rc = H5Fflush(file, H5F_SCOPE_GLOBAL);
    }
    H5Dclose(set);
    if (H5Fclose(file) < 0 || rc < 0)
        return outcome_fail(outcome, "HDF5 failed at %s", cell->path);
    outcome_lap(outcome, CLOSE);
    return 0;
}

static int hdf5_write(const struct cell *cell, const char *buf, struct outcome *outcome)
{
    return run(cell, 1, (char *)buf, outcome);
}

static int hdf5_read(const struct cell *cell, char *buf, struct outcome *outcome)
{
    return run(cell, 0, buf, outcome);
}

const struct back_end back_end_hdf5 = {.name = "hdf5", .write = hdf5_write, .read = hdf5_read};
#endif
