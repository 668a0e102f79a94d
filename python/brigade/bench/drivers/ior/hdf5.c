/* Parallel HDF5: one dataset of words, in which offsets are those of the other back ends' files.
 * Hints are those of MPI-IO beneath. */
#ifdef WITH_HDF5
#include <hdf5.h>
#include <stdlib.h>

#include "ior.h"

#define NAME "data"
#define WORD ((int64_t)sizeof(uint64_t))

struct file {
    hid_t file, data, transfer; /* the last: properties of moving, collective or not */
    char path[PATH_ROOM];
};

static int failed(char *why, const struct file *f, const char *doing)
{
    return why_not(why, "%s: HDF5 failed at %s", f->path, doing);
}

static const char *hdf5_refuse(const struct test *t, const struct way *way)
{
    (void)way;
    return t->o.random_offset ? "HDF5: no transfers in random order (-z)" : NULL;
}

static hid_t open_data(const struct target *target, hid_t file)
{
    const struct options *o = &target->t->o;
    hsize_t words = (hsize_t)(o->block / WORD * o->segments);
    if (!o->own_file)
        words *= (hsize_t)target->t->ranks;
    if (!target->writing || H5Lexists(file, NAME, H5P_DEFAULT) > 0)
        return H5Dopen2(file, NAME, H5P_DEFAULT);
    hid_t space = H5Screate_simple(1, &words, NULL), how = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_fill_time(how, H5D_FILL_TIME_NEVER);
    hid_t data = H5Dcreate2(file, NAME, H5T_NATIVE_UINT64, space, H5P_DEFAULT, how, H5P_DEFAULT);
    H5Pclose(how);
    H5Sclose(space);
    return data;
}

static hid_t open_file(const struct target *target, const char *path, MPI_Info info)
{
    hid_t how = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    H5Pset_fapl_mpio(how, target->comm, info);
    if (!target->writing || target->t->o.use_existing)
        file = H5Fopen(path, target->writing ? H5F_ACC_RDWR : H5F_ACC_RDONLY, how);
    if (file < 0 && target->writing)
        file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, how);
    H5Pclose(how);
    return file;
}

static int hdf5_open(const struct target *target, void **file, char *why)
{
    struct file *f = calloc(1, sizeof *f);
    MPI_Info info;
    if (!f)
        return why_not(why, "no memory");
    snprintf(f->path, sizeof f->path, "%s", target->path);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    MPI_Info_create(&info);
    int rc = mpiio_hints(target, info, why);
    if (!rc && (f->file = open_file(target, f->path, info)) < 0)
        rc = failed(why, f, "opening the file");
    if (!rc && (f->data = open_data(target, f->file)) < 0) {
        rc = failed(why, f, "opening the dataset '" NAME "'");
        H5Fclose(f->file);
    }
    MPI_Info_free(&info);
    if (rc) {
        free(f);
        return rc;
    }
    f->transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_dxpl_mpio(f->transfer,
                     target->t->o.collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT);
    *file = f;
    return 0;
}

static int hdf5_move(void *file, int writing, char *buf, int64_t bytes, int64_t offset, char *why)
{
    struct file *f = file;
    hsize_t start = (hsize_t)(offset / WORD), count = (hsize_t)(bytes / WORD);
    hid_t space = H5Dget_space(f->data), memory = H5Screate_simple(1, &count, NULL);
    herr_t rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL);
    if (rc >= 0)
        rc = writing ? H5Dwrite(f->data, H5T_NATIVE_UINT64, memory, space, f->transfer, buf)
                     : H5Dread(f->data, H5T_NATIVE_UINT64, memory, space, f->transfer, buf);
    H5Sclose(memory);
    H5Sclose(space);
    return rc >= 0 ? 0 : failed(why, f, writing ? "writing" : "reading");
}

static int hdf5_sync(void *file, char *why)
{
    struct file *f = file;
    return H5Fflush(f->file, H5F_SCOPE_GLOBAL) >= 0 ? 0 : failed(why, f, "flushing");
}

static int hdf5_close(void *file, char *why)
{
    struct file *f = file;
    H5Pclose(f->transfer);
    int bad = H5Dclose(f->data) < 0;
    bad |= H5Fclose(f->file) < 0;
    int rc = bad ? failed(why, f, "closing") : 0;
    free(f);
    return rc;
}

const struct back_end back_end_hdf5 = {.name = "HDF5",
                                       .help = "parallel HDF5, one dataset; hints are MPI's",
                                       .own_format = 1,
                                       .refuse = hdf5_refuse,
                                       .open = hdf5_open,
                                       .move = hdf5_move,
                                       .sync = hdf5_sync,
                                       .close = hdf5_close,
                                       .size = posix_size,
                                       .remove = posix_remove};
#endif
