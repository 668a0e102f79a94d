/* See late_hints.h. */
#include "mpiio/late_hints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "mpiio/asks.h"
#include "mpiio/late.h"
#include "store/store.h"

/* A program whose files differ more has them opened by MPI. */
#define MOST 16

struct key {
    unsigned group;
    dev_t device;
    char given[2048]; /* its hints, a line each */
};

static struct answer {
    struct key key;
    const struct mpi_late *mpi;
    mpi_handle info;
} known[MOST];
static int n_known;
static int asked;

/* What the next file is to tell, and the MPI; NULL: nothing. */
static const struct mpi_late *expects;
static struct key expected;

/* File systems whose files MPIs treat alike, as <linux/magic.h> and their own sources number them:
 * ext2 to 4, XFS, Btrfs, ZFS, tmpfs, ramfs, overlayfs, NFS, and those of FUSE. Others (Lustre,
 * GPFS, BeeGFS, PanFS, ...) may give each file stripes of its own, which are hints of MPI's. */
static const unsigned alike[] = {0xef53,     0x58465342, 0x9123683e, 0x2fc12fc1, 0x01021994,
                                 0x858458f6, 0x794c7630, 0x6969,     0x65735546};

static int is_alike(int descriptor)
{
    struct statfs fs;
    if (fstatfs(descriptor, &fs))
        return 0;
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        if ((unsigned)fs.f_type == alike[i])
            return 1;
    return 0;
}

/* 1; 0: no file is like it. MPICH_MPIIO_HINTS are of names of files (Cray's MPICH). */
static int make_key(const struct mpi_late *mpi, const struct file *f, mpi_handle info,
                    struct key *key)
{
    struct stat st;
    char name[256], value[1025];
    size_t used = 0;
    if (getenv("MPICH_MPIIO_HINTS") || fstat(store_descriptor(f->all.store), &st))
        return 0;
    memset(key, 0, sizeof *key);
    key->group = f->group->number;
    key->device = st.st_dev;
    for (int i = 0; mpi->nth_hint(info, i, name, value, sizeof value); i++) {
        int n = snprintf(key->given + used, sizeof key->given - used, "%s=%s\n", name, value);
        used += (size_t)n;
        if (n < 0 || used >= sizeof key->given)
            return 0;
    }
    return 1;
}

static const struct answer *find(const struct key *key)
{
    for (int i = 0; i < n_known; i++)
        if (known[i].key.group == key->group && known[i].key.device == key->device &&
            strcmp(known[i].key.given, key->given) == 0)
            return &known[i];
    return NULL;
}

int late_hints_unasked(void)
{
    return !asked && !asks_for(ASKS_HINTS);
}

int late_hints_allow(const struct mpi_late *mpi, const struct file *f, mpi_handle info)
{
    struct key key;
    if (late_hints_unasked() || (make_key(mpi, f, info, &key) && find(&key)))
        return 1;
    return !asked && !is_alike(store_descriptor(f->all.store));
}

void late_hints_expect(const struct mpi_late *mpi, const struct file *f, mpi_handle info)
{
    int can = make_key(mpi, f, info, &expected) && !find(&expected) &&
              is_alike(store_descriptor(f->all.store)) && n_known < MOST;
    expects = can ? mpi : NULL;
}

void late_hints_learn(mpi_handle opened)
{
    struct answer *a = &known[n_known];
    if (expects && opened && expects->hints(opened, &a->info) == 0) {
        a->key = expected;
        a->mpi = expects;
        n_known++;
    }
    expects = NULL;
}

int late_hints_answer(const struct file *f, void *info)
{
    const struct mpi_late *mpi = f->mpi->files->late;
    const struct late *late = f->late;
    struct key key;
    asked = 1;
    if (late->has_view && late->view.info != mpi->no_info)
        return 0;
    const struct answer *a = make_key(mpi, f, late->info, &key) ? find(&key) : NULL;
    return a && mpi->give_info(a->info, info) == 0;
}

void late_hints_end(void)
{
    for (; n_known; n_known--)
        known[n_known - 1].mpi->free_info(known[n_known - 1].info);
}
