/* See file.h: our descriptors are closed, so that others see what was written and what they wrote
 * is seen; where several threads may call MPI, while no call of one rank uses them. */
#include <pthread.h>

#include "mpiio/file.h"
#include "mpiio/report.h"
#include "store/store.h"

void file_show_init(struct file *f)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    /* one who is to close them comes to his turn, whatever others begin meanwhile */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&f->used, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

/* On one node nothing is closed that calls of one rank use, but of files that MPI opened. */
static int is_locked(const struct file *f)
{
    return !f->group->is_shared && (!f->late || f->all.world->n_nodes > 1);
}

void file_use(struct file *f)
{
    if (is_locked(f))
        pthread_rwlock_rdlock(&f->used);
}

void file_used(struct file *f)
{
    if (is_locked(f))
        pthread_rwlock_unlock(&f->used);
}

int file_show(struct file *f, struct io_store *store, struct brg_error *failure)
{
    int locks = is_locked(f);
    if (locks)
        pthread_rwlock_wrlock(&f->used);
    int rc = store_show(store, failure);
    if (locks)
        pthread_rwlock_unlock(&f->used);
    return rc;
}

int file_show_last(struct file *f, struct brg_error *failure)
{
    struct reach *r = &f->all;
    if (f->can_write && r->store)
        file_show(f, r->store, failure);
    if (f->can_write && f->alone && !failure->code)
        file_show(f, f->alone, failure);
    int rc = r->opened ? world_failure(r->world, failure) : failure->code;
    if (rc)
        report_failed(failure->text);
    return rc;
}

void file_wrote(struct file *f)
{
    int nothing = WROTE_NOTHING;
    if (f && atomic_load_explicit(&f->wrote, memory_order_relaxed) == WROTE_NOTHING)
        atomic_compare_exchange_strong(&f->wrote, &nothing, WROTE_ALONE);
}

void file_writes_on(struct file *f)
{
    if (f)
        atomic_store(&f->wrote, WROTE_ON);
}

/* Our descriptor is opened for the size, and so closing it sends what MPI wrote, too. */
int file_show_written(struct file *f, uint64_t *bytes, struct brg_error *failure)
{
    int alone = WROTE_ALONE;
    int apart = f->all.world->n_nodes > 1;
    uint64_t size;
    if (atomic_load_explicit(&f->wrote, memory_order_relaxed) == WROTE_NOTHING)
        return 0;
    atomic_compare_exchange_strong(&f->wrote, &alone, WROTE_NOTHING);
    if ((bytes || apart) && store_size(f->all.store, &size, NULL) == 0 && bytes && size > *bytes)
        *bytes = size;
    if (apart) {
        file_show(f, f->all.store, failure);
        if (f->alone && !failure->code)
            file_show(f, f->alone, failure);
    }
    return 1;
}

/* What this rank itself wrote has been shown: nothing can be told of it. */
void file_look_again(struct file *f)
{
    if (f->all.world->n_nodes > 1 && !f->all.unable)
        file_show(f, f->all.store, NULL);
}

int file_synced(struct file *f)
{
    int rc = 0, alone = 0, on = WROTE_ON;
    atomic_compare_exchange_strong(&f->wrote, &on, WROTE_ALONE);
    if (f->all.store)
        store_synced(f->all.store);
    if (f->alone)
        store_synced(f->alone);
    if (f->all.opened && !f->all.unable && f->all.world->n_nodes > 1)
        rc = file_show(f, f->all.store, NULL);
    if (f->alone)
        alone = file_show(f, f->alone, NULL);
    return rc ? rc : alone;
}
