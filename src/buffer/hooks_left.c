/* Ways to a file that go by the buffers: it is left to the kernel before. */
#include "base/newer.h"
#include "buffer/hooks.h"
#include "buffer/worker.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

void *hook_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (!(flags & MAP_ANONYMOUS) && left(fd, "mmap"))
        return MAP_FAILED;
    return REAL(mmap)(at, n, prot, flags, fd, offset);
}

static int left_both(int one, int two, const char *why)
{
    int rc = left(one, why);
    return left(two, why) || rc;
}
ssize_t hook_sendfile(int to, int from, off_t *at, size_t n)
{
    return left_both(to, from, "sendfile") ? -1 : REAL(sendfile)(to, from, at, n);
}
ssize_t hook_splice(int from, off64_t *at, int to, off64_t *where, size_t n, unsigned flags)
{
    return left_both(to, from, "splice") ? -1 : REAL(splice)(from, at, to, where, n, flags);
}
ssize_t hook_copy_file_range(int from, off64_t *at, int to, off64_t *where, size_t n,
                             unsigned flags)
{
    return left_both(to, from, "copy_file_range")
               ? -1
               : REAL(copy_file_range)(from, at, to, where, n, flags);
}

/* Descriptors that go to, or come from, another process share their position with it. */
static void left_in(struct msghdr *message, int received)
{
    if (!message || !message->msg_control || !__atomic_load_n(&n_files, __ATOMIC_RELAXED))
        return;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR(message, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        int *fds = (int *)CMSG_DATA(c);
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            if (received)
                file_opened(fds[i], NULL, O_RDWR);
            left_untold(fds[i], "passed over a socket");
        }
    }
}
ssize_t hook_sendmsg(int fd, const struct msghdr *message, int flags)
{
    left_in((struct msghdr *)message, 0);
    return REAL(sendmsg)(fd, message, flags);
}
int hook_sendmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags)
{
    for (unsigned i = 0; i < n; i++)
        left_in(&messages[i].msg_hdr, 0);
    return REAL(sendmmsg)(fd, messages, n, flags);
}
ssize_t hook_recvmsg(int fd, struct msghdr *message, int flags)
{
    ssize_t n = REAL(recvmsg)(fd, message, flags);
    if (n >= 0) {
        int saved = errno;
        left_in(message, 1);
        errno = saved;
    }
    return n;
}

int hook_recvmmsg(int fd, struct mmsghdr *messages, unsigned n, int flags, struct timespec *limit)
{
    int received = REAL(recvmmsg)(fd, messages, n, flags, limit), saved = errno;
    for (int i = 0; i < received; i++)
        left_in(&messages[i].msg_hdr, 1);
    errno = saved;
    return received;
}

int hook_aio_read(struct aiocb *one)
{
    return left(one->aio_fildes, "asynchronous I/O") ? -1 : REAL(aio_read)(one);
}
int hook_aio_write(struct aiocb *one)
{
    return left(one->aio_fildes, "asynchronous I/O") ? -1 : REAL(aio_write)(one);
}
int hook_aio_fsync(int how, struct aiocb *one)
{
    return left(one->aio_fildes, "asynchronous I/O") ? -1 : REAL(aio_fsync)(how, one);
}
int hook_lio_listio(int mode, struct aiocb *const list[], int n, struct sigevent *event)
{
    for (int i = 0; i < n; i++)
        if (list[i] && left(list[i]->aio_fildes, "asynchronous I/O"))
            return -1;
    return REAL(lio_listio)(mode, list, n, event);
}

int hook_vdprintf(int fd, const char *format, va_list arguments)
{
    return left(fd, "dprintf") ? -1 : REAL(vdprintf)(fd, format, arguments);
}
int hook___vdprintf_chk(int fd, int flag, const char *format, va_list arguments)
{
    return left(fd, "dprintf") ? -1 : REAL(__vdprintf_chk)(fd, flag, format, arguments);
}
int hook_dprintf(int fd, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int rc = hook_vdprintf(fd, format, list);
    va_end(list);
    return rc;
}
int hook___dprintf_chk(int fd, int flag, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int rc = hook___vdprintf_chk(fd, flag, format, list);
    va_end(list);
    return rc;
}

/* ---- system calls by their numbers ---- */

static int number_clones(long number)
{
#ifdef SYS_fork
    if (number == SYS_fork || number == SYS_vfork)
        return 1;
#endif
    return number == SYS_clone || number == SYS_clone3;
}

static int number_opens(long number)
{
#ifdef SYS_open
    if (number == SYS_open || number == SYS_creat)
        return 1;
#endif
    return number == SYS_openat || number == SYS_openat2 || number == SYS_open_by_handle_at ||
           number == SYS_pidfd_getfd;
}

static int number_replaces(long number)
{
#ifdef SYS_dup2
    if (number == SYS_dup2)
        return 1;
#endif
    return number == SYS_dup3;
}

/* 0, or -1 with errno. Of a call that names no descriptor first, the number may be that of one: its
 * file is left for nothing. */
static int before_number(long number, const long *a)
{
    static const char why[] = "a system call by number";
    int fd = a[number == SYS_mmap ? 4 : 0] < TABLE_FDS ? (int)a[number == SYS_mmap ? 4 : 0] : -1;
    if (number_clones(number))
        file_drop_all(why, 0);
    else if (number == SYS_execve || number == SYS_execveat)
        file_hand_over();
    else if (number == SYS_exit_group || number == SYS_exit)
        file_drain_all(1);
    else if (number == SYS_close_range)
        fd_before_close_range((unsigned)a[0], (unsigned)a[1], (int)a[2]);
    else if (left(fd, why))
        return -1;
    if (number_replaces(number))
        fd_before_onto((int)a[0], (int)a[1]);
    if (number == SYS_sendfile || number == SYS_splice || number == SYS_copy_file_range)
        return left((int)(number == SYS_sendfile ? a[1] : a[2]), why);
    return 0;
}

/* Descriptors that lead to files by ways that we do not see. Through a ring or a queue calls are
 * made that no library sees, on any file, also on one that is opened later. */
static void after_number(long number, long result)
{
    if (number == SYS_io_uring_setup || number == SYS_io_setup)
        file_stop("a queue of calls in the kernel");
    else if (number_opens(number)) {
        file_opened((int)result, NULL, O_RDWR);
        left_untold((int)result, "opened by a system call by number");
    }
}

long hook_syscall(long number, ...)
{
    va_list list;
    long a[6];
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(list, long);
    va_end(list);
    if (__atomic_load_n(&n_files, __ATOMIC_RELAXED) && before_number(number, a))
        return -1;
    long result = REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    if (result >= 0 && buffer_active) {
        int saved = errno;
        after_number(number, result);
        errno = saved;
    }
    return result;
}

/* The size a file may have: what exceeds it fails at the call itself. */
static void limited(int what, const struct rlimit *limit)
{
    if (what == RLIMIT_FSIZE && limit)
        __atomic_store_n(&file_limit_bytes, limit->rlim_cur, __ATOMIC_RELEASE);
}
int hook_setrlimit(int what, const struct rlimit *limit)
{
    int rc = REAL(setrlimit)((__rlimit_resource_t)what, limit);
    if (rc == 0)
        limited(what, limit);
    return rc;
}
int hook_prlimit(pid_t pid, int what, const struct rlimit *limit, struct rlimit *old)
{
    int rc = REAL(prlimit)(pid, (enum __rlimit_resource)what, limit, old);
    if (rc == 0 && (pid == 0 || pid == sys_getpid()))
        limited(what, limit);
    return rc;
}

/* Some of these are refused to a process of several threads. */

int hook_unshare(int flags)
{
    file_drop_all("unshare", 0);
    worker_stop();
    return REAL(unshare)(flags);
}
int hook_setns(int fd, int type)
{
    file_drop_all("setns", 0);
    worker_stop();
    return REAL(setns)(fd, type);
}

#define BRG_SECTION_LEFT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "buffer/hooks.def"
