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

static void drain_one(struct file *f, const void *positions)
{
    if (!positions) {
        file_drain(f);
        return;
    }
    f->past_cache = 0; /* no flag of ours is on what the next program gets */
    if (file_quiet(f))
        return;
    for (int fd = 0; fd < (int)fds_end; fd++)
        if (table[fd] && table[fd]->file == f && table[fd]->fd == fd)
            tell_position(table[fd]);
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
        drain_one(f, f);
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
