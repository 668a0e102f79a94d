/* See late_hints.h. */
#include "mpiio/late_hints.h"

#include <pthread.h>
#include <stdatomic.h>
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
static int n_known; /* what is known stays as it is */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int asked;

/* What the next file of this thread is to tell; NULL: nothing. */
static _Thread_local struct answer *expected;

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

/* 1; 0: no file is like it. */
static int make_key(const struct mpi_late *mpi, const struct file *f, mpi_handle info,
                    struct key *key)
{
    struct stat st;
    char name[256], value[1025];
    size_t used = 0;
    if (fstat(store_descriptor(f->all.store), &st))
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
    const struct answer *found = NULL;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_known && !found; i++)
        if (known[i].key.group == key->group && known[i].key.device == key->device &&
            strcmp(known[i].key.given, key->given) == 0)
            found = &known[i];
    pthread_mutex_unlock(&lock);
    return found;
}

/* One that is known by then is of the same file system and hints: it says the same. */
static void keep(const struct answer *answer)
{
    pthread_mutex_lock(&lock);
    int room = n_known < MOST;
    if (room)
        known[n_known++] = *answer;
    pthread_mutex_unlock(&lock);
    if (!room)
        answer->mpi->free_info(answer->info);
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
    struct answer *a = malloc(sizeof *a);
    int can = a && make_key(mpi, f, info, &a->key) && !find(&a->key) &&
              is_alike(store_descriptor(f->all.store));
    if (can)
        a->mpi = mpi;
    else
        free(a);
    expected = can ? a : NULL;
}

void late_hints_learn(mpi_handle opened)
{
    struct answer *a = expected;
    expected = NULL;
    if (a && opened && a->mpi->hints(opened, &a->info) == 0)
        keep(a);
    free(a);
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
