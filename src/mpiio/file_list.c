/* See file.h: which file a handle is. Most calls come with the handle of the call before: each
 * thread knows which file that was, as long as none has come or gone. */
#include <pthread.h>
#include <stdatomic.h>

#include "mpiio/file.h"
#include "mpiio/late.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct file *files;
static _Atomic uint64_t changes; /* of the list; under the lock */

static _Thread_local struct {
    mpi_handle handle;
    struct file *file;
    uint64_t changes; /* when it was found */
} last;

static struct file *find(int (*is_it)(const struct file *, mpi_handle), mpi_handle what)
{
    pthread_mutex_lock(&lock);
    struct file *f = files;
    while (f && !is_it(f, what))
        f = f->next;
    pthread_mutex_unlock(&lock);
    return f;
}

static int has_handle(const struct file *f, mpi_handle handle)
{
    return f->handle == handle;
}

struct file *file_of(mpi_handle handle)
{
    uint64_t now = atomic_load_explicit(&changes, memory_order_acquire);
    if (last.handle != handle || last.changes != now) {
        last.file = find(has_handle, handle);
        last.handle = handle;
        last.changes = now;
    }
    return last.file;
}

static int has_number(const struct file *f, mpi_handle number)
{
    return f->late && f->late->number == (int)number;
}

struct file *file_by_number(int number)
{
    return find(has_number, (mpi_handle)number);
}

static int is_in_mpi(const struct file *f, mpi_handle handle)
{
    const struct late *late = f->late;
    return late && ((late->is_alone && late->alone == handle) ||
                    (late->is_together && late->together == handle));
}

struct file *file_in_mpi(mpi_handle handle)
{
    return find(is_in_mpi, handle);
}

void file_keep(struct file *f, mpi_handle handle)
{
    pthread_mutex_lock(&lock);
    f->handle = handle;
    f->next = files;
    files = f;
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    pthread_mutex_unlock(&lock);
}

void file_forget(struct file *file)
{
    pthread_mutex_lock(&lock);
    struct file **at = &files;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    atomic_fetch_add_explicit(&changes, 1, memory_order_release);
    pthread_mutex_unlock(&lock);
}
