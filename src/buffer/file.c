/* See file.h. */
#include "buffer/direct.h"
#include "buffer/file_inside.h"
#include "buffer/inode.h"
#include "buffer/signals.h"
#include "buffer/worker.h"

struct desc *table[TABLE_FDS];
struct file files[FILES_MOST];
static struct desc descs[DESCS_MOST];
struct desc owing;
int owed[TABLE_FDS];
struct rules rules;
int buffer_active;
unsigned fds_end, n_files, n_pending, vforks;
uint32_t epoch;
uint64_t file_limit_bytes = UINT64_MAX;
int file_stopped;
static int own_pid;
struct lock files_lock;

int file_in_vforked_child(void)
{
    return __builtin_expect(vforks, 0) && sys_getpid() != own_pid;
}

void file_vforked(void)
{
    own_pid = own_pid ? own_pid : sys_getpid();
    __atomic_store_n(&vforks, 1, __ATOMIC_SEQ_CST);
}

void file_forked(void)
{
    own_pid = 0;
    vforks = 0;
}

struct desc *file_enter(int fd, int *err)
{
    if (err)
        *err = 0;
    if (me.inside)
        return NULL; /* a handler that was not deferred: the kernel's answer is all we have */
    inside_enter();
    for (;;) {
        struct desc *d = desc_of(fd);
        if (!d)
            break;
        if (file_in_vforked_child()) /* what is owed is owed to the parent */
            break;
        if (d == &owing && !err)
            break;
        if (d == &owing) {
            *err = __atomic_exchange_n(&owed[fd], 0, __ATOMIC_ACQ_REL);
            __atomic_store_n(&table[fd], NULL, __ATOMIC_RELEASE);
            break;
        }
        struct file *f = d->file;
        lock_take(&f->lock);
        if (__builtin_expect(table[fd] == d && d->file == f && f->used, 1))
            return d;
        lock_leave(&f->lock);
    }
    inside_leave();
    return NULL;
}

void file_leave(struct file *f)
{
    lock_leave(&f->lock);
    inside_leave();
}

int file_wait(struct file *f)
{
    uint32_t generation = f->generation, count = __atomic_load_n(&f->event.count, __ATOMIC_SEQ_CST);
    lock_leave(&f->lock);
    event_wait(&f->event, count, NULL);
    lock_take(&f->lock);
    return f->generation == generation ? 0 : REAL_CALL;
}

/* The same, for the end of a call. */
static int wait_for_calls(struct file *f)
{
    f->wanted = 1;
    return file_wait(f);
}

static void tell_of_calls(struct file *f)
{
    if (__builtin_expect(f->wanted, 0)) {
        f->wanted = 0;
        event_tell(&f->event);
    }
}

int call_begin(struct desc *d, int call)
{
    struct file *f = d->file;
    while (f->n_gates || ((call & CALL_POSITION) && d->busy) || ((call & CALL_WRITE) && f->writing))
        if (wait_for_calls(f) || d->file != f || !d->n_fds)
            return REAL_CALL;
    f->n_calls++;
    if (call & CALL_POSITION)
        d->busy = 1;
    if (call & CALL_WRITE)
        f->writing = 1;
    return 0;
}

void call_end(struct desc *d, int call)
{
    struct file *f = d->file;
    f->n_calls--;
    if (call & CALL_POSITION)
        d->busy = 0;
    if (call & CALL_WRITE)
        f->writing = 0;
    tell_of_calls(f);
}

static int is_in_call(const struct file *f, int writing)
{
    return writing ? f->writing : f->n_calls || f->n_busy;
}

static int wait_until_quiet(struct file *f, int writing)
{
    f->n_gates++;
    while (is_in_call(f, writing) || file_pending(f))
        if (file_drain(f) || (is_in_call(f, writing) && wait_for_calls(f)))
            return REAL_CALL;
    f->n_gates--;
    tell_of_calls(f);
    return 0;
}

int file_write_out(struct file *f)
{
    return wait_until_quiet(f, 1);
}

int file_quiet(struct file *f)
{
    return wait_until_quiet(f, 0);
}

int file_take_error(struct file *f)
{
    int err = f->error;
    if (err) {
        f->error = 0;
        file_drop_locked(f, "an error in the background");
    }
    return err;
}

int file_is(const struct file *f, int fd)
{
    dev_t dev;
    ino_t ino;
    return inode_of(fd, &dev, &ino) && dev == f->dev && ino == f->ino;
}

static struct file *find(dev_t dev, ino_t ino)
{
    for (struct file *f = files; f < files + FILES_MOST; f++)
        if (f->used && f->ino == ino && f->dev == dev)
            return f;
    return NULL;
}

/* Before it is in the table. */
static void raise_end(int fd)
{
    unsigned wanted = (unsigned)fd + 1, end = __atomic_load_n(&fds_end, __ATOMIC_SEQ_CST);
    while (wanted > end && !__atomic_compare_exchange_n(&fds_end, &end, wanted, 0, __ATOMIC_SEQ_CST,
                                                        __ATOMIC_SEQ_CST))
        continue;
}

static struct desc *new_desc(struct file *f, int fd, int flags)
{
    for (struct desc *d = descs; d < descs + DESCS_MOST; d++) {
        if (__atomic_load_n(&d->n_fds, __ATOMIC_ACQUIRE))
            continue;
        *d = (struct desc){.file = f,
                           .fd = fd,
                           .n_fds = 1,
                           .mode = flags & O_ACCMODE,
                           .append = (flags & O_APPEND) != 0,
                           .direct_writes = f->rule.safe || (flags & (O_SYNC | O_DSYNC)) != 0};
        /* fopen("a") has gone to the end already */
        long at = sys_call(SYS_lseek, fd, 0, 1 /* SEEK_CUR */, 0, 0, 0);
        d->position = at > 0 ? (uint64_t)at : 0;
        f->n_descs++;
        raise_end(fd);
        return d;
    }
    return NULL;
}

static struct file *new_file(const struct rule *rule, const char *path, dev_t dev, ino_t ino)
{
    struct file *f = files;
    while (f < files + FILES_MOST && f->used)
        f++;
    if (f == files + FILES_MOST)
        return NULL;
    lock_take(&f->lock); /* by somebody who has just read an old entry */
    f->used = 1;
    f->dev = dev;
    f->ino = ino;
    f->rule = *rule;
    f->n_descs = f->n_busy = f->n_calls = f->n_gates = f->n_filled = 0;
    f->n_sealed = f->n_written = 0;
    f->writing = f->wanted = f->shared_append = f->appending = f->counted = 0;
    f->error = 0;
    f->open = NULL;
    f->low = UINT64_MAX;
    f->high = 0;
    f->n_order = 0;
    f->record = report_of(path, rule->verbose);
    __atomic_add_fetch(&n_files, 1, __ATOMIC_SEQ_CST);
    return f;
}

void file_forget(struct file *f)
{
    file_discard_reads(f, 0, UINT64_MAX);
    f->used = 0;
    f->generation++;
    __atomic_sub_fetch(&n_files, 1, __ATOMIC_SEQ_CST);
    event_tell(&f->event);
}

void file_opened(int fd, const char *path, int flags)
{
    dev_t dev;
    ino_t ino;
    if (fd < 0 || !buffer_active || file_stopped || me.inside || file_in_vforked_child())
        return;
    const struct rule *rule = path ? rules_find(&rules, path) : NULL;
    int high = fd >= TABLE_FDS; /* never ours, but its file may be */
    if (rule && (rule->off || high))
        rule = NULL;
    if ((!rule && !__atomic_load_n(&n_files, __ATOMIC_ACQUIRE)) || (flags & O_PATH))
        return;
    if (!S_ISREG(inode_of(fd, &dev, &ino)))
        return;
    int plain = !high && !(flags & O_DIRECT);
    inside_enter();
    lock_take(&files_lock);
    struct file *f = find(dev, ino);
    if (f) {
        lock_take(&f->lock);
        if (f->used && f->ino == ino && f->dev == dev) {
            if (plain) { /* what others have closed before this open is seen */
                file_discard_reads(f, 0, UINT64_MAX);
                __atomic_store_n(&table[fd], new_desc(f, fd, flags), __ATOMIC_RELEASE);
                f->record->opens++;
            }
            if (!desc_of(fd))
                file_drop_locked(f, high    ? "descriptor number too high"
                                    : plain ? "too many open files"
                                            : "opened with O_DIRECT");
        }
        lock_leave(&f->lock);
    } else if (rule && plain && !inode_is_banned(dev, ino) && !inode_is_made_up(fd, dev) &&
               !inode_is_open_elsewhere(fd, dev, ino)) {
        f = new_file(rule, path, dev, ino);
        if (f) {
            direct_opened(f, fd);
            __atomic_store_n(&table[fd], new_desc(f, fd, flags), __ATOMIC_RELEASE);
            f->record->opens++;
            if (!desc_of(fd))
                file_forget(f);
            lock_leave(&f->lock);
        }
    }
    lock_leave(&files_lock);
    inside_leave();
    signals_watch();
}

/* Another descriptor of the same desc, when the one it goes by is closed. */
static void replace_fd(struct desc *d)
{
    for (int fd = 0; fd < (int)fds_end; fd++)
        if (table[fd] == d) {
            d->fd = fd;
            return;
        }
}

static void forget_fd(int fd)
{
    struct desc *d = table[fd];
    struct file *f = d->file;
    __atomic_store_n(&table[fd], NULL, __ATOMIC_RELEASE);
    if (__atomic_sub_fetch(&d->n_fds, 1, __ATOMIC_RELEASE) == 0) {
        if (--f->n_descs == 0)
            file_forget(f);
    } else if (d->fd == fd) {
        /* the kernel's position of a description is one, whoever asks */
        replace_fd(d);
    }
}

int file_closing(int fd)
{
    int err;
    struct desc *d = file_enter(fd, &err);
    if (!d)
        return -err;
    struct file *f = d->file;
    if (file_quiet(f) == 0 && table[fd] == d && d->file == f) {
        err = f->error;
        f->error = 0;
        if (err && f->n_descs > 1)
            file_drop_locked(f, "an error in the background");
        else
            forget_fd(fd);
    }
    file_leave(f);
    if (!err && desc_of(fd) == &owing) { /* dropped meanwhile */
        file_enter(fd, &err);
        err = -err;
    }
    return err;
}

void file_closing_untold(int fd)
{
    int err;
    struct desc *d = file_enter(fd, &err); /* what is owed for this number ends with it */
    if (!d)
        return;
    struct file *f = d->file;
    if (file_quiet(f) == 0 && table[fd] == d && d->file == f)
        forget_fd(fd);
    file_leave(f);
    if (desc_of(fd) == &owing) /* dropped meanwhile */
        file_enter(fd, &err);
}

void file_duplicated(int from, int to)
{
    if ((unsigned)to >= TABLE_FDS) {
        file_drop_untold(from, "descriptor number too high");
        return;
    }
    struct desc *d = file_enter(from, NULL);
    if (!d)
        return;
    d->n_fds++;
    raise_end(to);
    __atomic_store_n(&table[to], d, __ATOMIC_RELEASE);
    file_leave(d->file);
}

void file_lock_in(struct file *f)
{
    inside_enter();
    lock_take(&f->lock);
}

int file_drain_inode(dev_t dev, ino_t ino)
{
    if (!__atomic_load_n(&n_files, __ATOMIC_ACQUIRE) || me.inside)
        return 0;
    int was = 0;
    struct file *f = find(dev, ino);
    if (!f)
        return 0;
    file_lock_in(f);
    if (f->used && f->dev == dev && f->ino == ino) {
        was = 1;
        file_drain(f);
    }
    file_leave(f);
    return was;
}
