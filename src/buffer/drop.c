/* Stepping aside: files are written out and left to the kernel, one or all, for good. Before a fork
 * too, since parent and child share the positions. See file.h. */
#include "buffer/file_inside.h"
#include "buffer/inode.h"
#include "buffer/signals.h"
#include "buffer/worker.h"

static void tell_position(const struct desc *d)
{
    sys_call(SYS_lseek, d->fd, (long)d->position, 0 /* SEEK_SET */, 0, 0, 0);
}

void file_drop_locked(struct file *f, const char *why)
{
    if (file_quiet(f))
        return;
    for (int fd = 0; fd < (int)fds_end; fd++) {
        struct desc *d = table[fd];
        if (!d || d == &owing || d->file != f)
            continue;
        if (d->fd == fd)
            tell_position(d);
        if (f->error && d->mode != O_RDONLY) {
            owed[fd] = -f->error;
            f->error = 0;
            __atomic_store_n(&table[fd], &owing, __ATOMIC_RELEASE);
        } else
            __atomic_store_n(&table[fd], NULL, __ATOMIC_RELEASE);
        __atomic_sub_fetch(&d->n_fds, 1, __ATOMIC_RELEASE);
    }
    if (!f->record->dropped)
        f->record->dropped = why;
    inode_ban(f->dev, f->ino);
    file_forget(f);
}

int file_drop(int fd, const char *why)
{
    int err;
    struct desc *d = file_enter(fd, &err);
    if (!d)
        return -err;
    struct file *f = d->file;
    if (file_drain(f) == 0) {
        err = f->error;
        f->error = 0;
        file_drop_locked(f, why);
    }
    file_leave(f);
    return err;
}

void file_drop_untold(int fd, const char *why)
{
    struct desc *d = file_enter(fd, NULL);
    if (!d)
        return;
    file_drop_locked(d->file, why);
    file_leave(d->file);
}

/* For each file in use: locked, `act`, left. */
static void each_file(void (*act)(struct file *f, const void *argument), const void *argument)
{
    if (!__atomic_load_n(&n_files, __ATOMIC_ACQUIRE) || me.inside || file_in_vforked_child())
        return;
    for (struct file *f = files; f < files + FILES_MOST; f++) {
        if (!__atomic_load_n(&f->used, __ATOMIC_ACQUIRE))
            continue;
        file_lock_in(f);
        if (f->used)
            act(f, argument);
        file_leave(f);
    }
}

struct drop_order {
    const char *why;
    int keep_private;
};

/* For each desc of the file. */
static void each_desc(const struct file *f, void (*act)(struct desc *d))
{
    for (int fd = 0; fd < (int)fds_end; fd++)
        if (table[fd] && table[fd]->file == f && table[fd]->fd == fd)
            act(table[fd]);
}

static void tell_if_idle(struct desc *d)
{
    if (!d->busy)
        tell_position(d);
}

static void write_directly(struct desc *d)
{
    d->direct_writes = 1;
}

static void drain_one(struct file *f, const void *positions)
{
    if (file_drain(f) == 0 && positions)
        each_desc(f, tell_if_idle);
}

static void hand_over_one(struct file *f, const void *nothing)
{
    (void)nothing;
    f->past_cache = 0;
    if (file_drain(f))
        return;
    while (f->rule.direct && f->n_busy)
        if (file_wait(f))
            return;
    each_desc(f, tell_if_idle);
}

/* A read of another thread may hang with its file system, and hold up no end: then the file is not
 * dropped, and what is written from now on is written at once. */
static void end_one(struct file *f, const void *why)
{
    each_desc(f, write_directly);
    if (file_write_out(f))
        return;
    if (f->n_calls || f->n_busy)
        each_desc(f, tell_if_idle);
    else
        file_drop_locked(f, why);
}

static void drop_one(struct file *f, const void *argument)
{
    const struct drop_order *order = argument;
    int shared = !order->keep_private;
    for (int fd = 0; fd < (int)fds_end && !shared; fd++)
        shared = table[fd] && table[fd]->file == f && !(sys_fcntl(fd, F_GETFD, 0) & FD_CLOEXEC);
    if (shared)
        file_drop_locked(f, order->why);
    else
        hand_over_one(f, NULL);
}

void file_drop_all(const char *why, int keep_private)
{
    struct drop_order order = {why, keep_private};
    each_file(drop_one, &order);
}

void file_stop(const char *why)
{
    __atomic_store_n(&file_stopped, 1, __ATOMIC_SEQ_CST);
    file_drop_all(why, 0);
}

void file_end(void)
{
    __atomic_store_n(&file_stopped, 1, __ATOMIC_SEQ_CST);
    each_file(end_one, "exit");
}

void file_hand_over(void)
{
    each_file(hand_over_one, NULL);
}

void file_drain_all(int positions)
{
    if (positions || __atomic_load_n(&n_pending, __ATOMIC_ACQUIRE))
        each_file(drain_one, positions ? "" : NULL);
}

void file_fork_begin(void)
{
    inside_enter();
    lock_take(&files_lock);
    for (struct file *f = files; n_files && f < files + FILES_MOST; f++) {
        if (!f->used)
            continue;
        lock_take(&f->lock);
        if (f->used)
            file_drop_locked(f, "fork: parent and child share the position");
        lock_leave(&f->lock);
    }
    worker_fork_begin();
}

void file_fork_end(int in_child)
{
    worker_fork_end(in_child);
    if (in_child) {
        file_forked();
        report_forked();
        for (struct file *f = files; f < files + FILES_MOST; f++)
            f->lock = (struct lock){0};
    }
    lock_leave(&files_lock);
    inside_leave();
}
