/* `others_driver WAY [many]`, in an empty folder: a file is written and read by calls that are
 * hooked and by WAY in turns. Prints what each call returned, and the bytes that came of it; in the
 * end the file's. What it prints may not depend on whether it is buffered. Exit 77: there is no WAY
 * here. */
#define _GNU_SOURCE
#include "others.h"

#include <aio.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

static int many; /* messages by sendmmsg and recvmmsg */

/* ---- asynchronous I/O of POSIX ---- */

static long ended(struct aiocb *one)
{
    const struct aiocb *list[] = {one};
    while (aio_error(one) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_return(one);
}
static void by_aio(void)
{
    int fd = opened("a.dat");
    char text[] = "WRITTEN";
    struct aiocb put = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 7, .aio_offset = 5};
    struct aiocb get = {.aio_fildes = fd, .aio_buf = got, .aio_nbytes = 30};
    begin(fd);
    SAY(aio_read(&get));
    show("read", ended(&get));
    SAY(aio_write(&put));
    SAY(ended(&put));
    show("pread", pread(fd, got, 40, 0));
    SAY(write(fd, "more", 4));
    SAY(aio_fsync(O_SYNC, &put));
    SAY(ended(&put));
    SAY(aio_read(&get));
    show("read", ended(&get));
    end(fd, "a.dat");
}
static void by_list(void)
{
    int fd = opened("a.dat"), other = opened("b.dat");
    char text[] = "LISTED";
    struct aiocb put = {.aio_fildes = fd,
                        .aio_buf = text,
                        .aio_nbytes = 6,
                        .aio_offset = 3,
                        .aio_lio_opcode = LIO_WRITE};
    struct aiocb get = {
        .aio_fildes = other, .aio_buf = got, .aio_nbytes = 30, .aio_lio_opcode = LIO_READ};
    struct aiocb *list[] = {&put, NULL, &get};
    begin(fd);
    begin(other);
    SAY(lio_listio(LIO_WAIT, list, 3, NULL));
    SAY(aio_return(&put));
    show("read", aio_return(&get));
    end(other, "b.dat");
    end(fd, "a.dat");
}

/* ---- within the kernel, through pipes ---- */

static void by_splice(void)
{
    int fd = opened("a.dat"), ends[2];
    loff_t at = 5, to = 30;
    if (pipe(ends))
        exit(NOT_HERE);
    begin(fd);
    SAY(splice(fd, &at, ends[1], NULL, 10, 0));
    SAY(splice(ends[0], NULL, fd, &to, 10, 0));
    SAY(lseek(fd, 2, SEEK_SET));
    SAY(splice(fd, NULL, ends[1], NULL, 4, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    show("piped", read(ends[0], got, 10));
    end(fd, "a.dat");
}
static void by_tee(void)
{
    int fd = opened("a.dat"), one[2], two[2];
    struct iovec pages = {"given", 5};
    if (pipe(one) || pipe(two))
        exit(NOT_HERE);
    begin(fd);
    SAY(vmsplice(one[1], &pages, 1, 0));
    SAY(tee(one[0], two[1], 5, 0));
    SAY(splice(one[0], NULL, fd, NULL, 5, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(write(fd, "-", 1));
    SAY(splice(two[0], NULL, fd, NULL, 5, 0));
    end(fd, "a.dat");
}
static void by_copy(void)
{
    int fd = opened("a.dat"), other = opened("b.dat");
    loff_t at = 4;
    begin(fd);
    begin(other);
    SAY(copy_file_range(fd, &at, other, NULL, 8, 0));
    SAY(lseek(other, 0, SEEK_CUR));
    SAY(lseek(fd, 1, SEEK_SET));
    SAY(copy_file_range(fd, NULL, other, NULL, 3, 0));
    SAY(lseek(fd, 0, SEEK_CUR));
    end(other, "b.dat");
    end(fd, "a.dat");
}

/* ---- descriptors over a socket ---- */

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};
static struct msghdr message(union control *control, struct iovec *byte)
{
    struct msghdr m = {.msg_iov = byte,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof control->room};
    *CMSG_FIRSTHDR(&m) = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    return m;
}
static void pass(int to, int fd)
{
    union control control = {0};
    char text = 'x';
    struct iovec byte = {&text, 1};
    struct mmsghdr m = {.msg_hdr = message(&control, &byte)};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&m.msg_hdr)), &fd, sizeof fd);
    SAY(many ? sendmmsg(to, &m, 1, 0) : sendmsg(to, &m.msg_hdr, 0));
}
static int passed(int from)
{
    union control control = {0};
    char text;
    int fd = -1;
    struct iovec byte = {&text, 1};
    struct mmsghdr m = {.msg_hdr = message(&control, &byte)};
    long r = many ? recvmmsg(from, &m, 1, 0, NULL) : recvmsg(from, &m.msg_hdr, 0);
    if (r > 0)
        memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m.msg_hdr)), sizeof fd);
    return fd;
}
/* To a child that moves the position they share, then back again: one description all the time. */
static void by_socket(void)
{
    int fd = opened("a.dat"), ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
        exit(NOT_HERE);
    pid_t child = fork();
    if (child == 0) {
        int theirs = passed(ends[1]);
        if (write(theirs, "child", 5) != 5 || lseek(theirs, 2, SEEK_CUR) < 0)
            _exit(1);
        pass(ends[1], theirs);
        _exit(0);
    }
    fd = open("b.dat", O_RDWR | O_CREAT, 0600);
    begin(fd);
    pass(ends[0], fd);
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    int back = passed(ends[0]);
    SAY(lseek(fd, 0, SEEK_CUR));
    SAY(write(back, "back", 4));
    SAY(write(fd, "mine", 4));
    SAY(lseek(back, 0, SEEK_CUR));
    close(back);
    end(fd, "b.dat");
}
/* A descriptor of another description of a file that is buffered here arrives. */
static void by_arrival(void)
{
    int ends[2], names[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) || pipe(names))
        exit(NOT_HERE);
    pid_t child = fork();
    if (child == 0) {
        char go;
        if (read(names[0], &go, 1) != 1)
            _exit(1);
        int fd = syscall(SYS_openat, AT_FDCWD, "a.dat", O_RDWR);
        freopen("/dev/null", "w", stdout);
        pass(ends[1], fd);
        _exit(fd < 0);
    }
    int fd = opened("a.dat");
    begin(fd);
    SAY(write(names[1], "g", 1));
    int status = -1;
    waitpid(child, &status, 0);
    SAY(status);
    int theirs = passed(ends[0]);
    SAY(write(fd, "after", 5));
    show("theirs", read(theirs, got, 40));
    SAY(write(theirs, "!", 1));
    end(fd, "a.dat");
}

/* ---- by rings and queues of calls in the kernel ---- */

static struct {
    int fd;
    unsigned *tail, *head, *mask, *array, *done_head, *done_tail, *done_mask;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
} ring;

static void ring_open(void)
{
    struct io_uring_params p = {0};
    ring.fd = (int)syscall(SYS_io_uring_setup, 4, &p);
    if (ring.fd < 0)
        exit(NOT_HERE);
    int how = PROT_READ | PROT_WRITE;
    char *in = mmap(NULL, p.sq_off.array + 64, how, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    char *out = mmap(NULL, p.cq_off.cqes + 8 * sizeof *ring.done, how, MAP_SHARED, ring.fd,
                     IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, 4 * sizeof *ring.entries, how, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    ring.tail = (unsigned *)(void *)(in + p.sq_off.tail);
    ring.mask = (unsigned *)(void *)(in + p.sq_off.ring_mask);
    ring.array = (unsigned *)(void *)(in + p.sq_off.array);
    ring.done_head = (unsigned *)(void *)(out + p.cq_off.head);
    ring.done_mask = (unsigned *)(void *)(out + p.cq_off.ring_mask);
    ring.done = (struct io_uring_cqe *)(void *)(out + p.cq_off.cqes);
}
/* The system call is made as liburing makes it: no library sees it. */
static long unseen(long number, long a, long b, long c, long d)
{
#ifdef __x86_64__
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#else
    return syscall(number, a, b, c, d, 0, 0);
#endif
}
static long ring_do(int write_it, int fd, void *buf, unsigned n, uint64_t at)
{
    unsigned tail = *ring.tail, i = tail & *ring.mask;
    ring.entries[i] = (struct io_uring_sqe){.opcode = write_it ? IORING_OP_WRITE : IORING_OP_READ,
                                            .fd = fd,
                                            .addr = (uint64_t)(uintptr_t)buf,
                                            .len = n,
                                            .off = at};
    ring.array[i] = i;
    __atomic_store_n(ring.tail, tail + 1, __ATOMIC_RELEASE);
    if (unseen(SYS_io_uring_enter, ring.fd, 1, 1, IORING_ENTER_GETEVENTS) != 1)
        exit(NOT_HERE);
    unsigned head = *ring.done_head;
    long result = ring.done[head & *ring.done_mask].res;
    __atomic_store_n(ring.done_head, head + 1, __ATOMIC_RELEASE);
    return result;
}
/* Of a file that was open before the ring, and of one that is opened after it. */
static void by_ring(void)
{
    char text[] = "RING";
    int fd = opened("a.dat");
    begin(fd);
    ring_open();
    show("ring", ring_do(0, fd, got, 40, 0));
    SAY(ring_do(1, fd, text, 4, 6));
    show("pread", pread(fd, got, 40, 0));
    end(fd, "a.dat");
    fd = opened("b.dat");
    begin(fd);
    show("ring", ring_do(0, fd, got, 40, 0));
    SAY(ring_do(1, fd, text, 4, 6));
    show("pread", pread(fd, got, 40, 0));
    end(fd, "b.dat");
}

static long queue_do(aio_context_t queue, int what, int fd, void *buf, unsigned n, long at)
{
    struct iocb one = {.aio_lio_opcode = (uint16_t)what,
                       .aio_fildes = (uint32_t)fd,
                       .aio_buf = (uint64_t)(uintptr_t)buf,
                       .aio_nbytes = n,
                       .aio_offset = at};
    struct iocb *list[] = {&one};
    struct io_event event = {0};
    if (unseen(SYS_io_submit, (long)queue, 1, (long)list, 0) != 1 ||
        syscall(SYS_io_getevents, queue, 1, 1, &event, NULL) != 1)
        exit(NOT_HERE);
    return (long)event.res;
}
/* The kernel's own asynchronous I/O, as libaio asks for it. */
static void by_queue(void)
{
    char text[] = "QUEUE";
    aio_context_t queue = 0;
    int fd = opened("a.dat");
    begin(fd);
    if (syscall(SYS_io_setup, 4, &queue))
        exit(NOT_HERE);
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "b.dat" : "a.dat";
        if (i) {
            fd = opened(name);
            begin(fd);
        }
        show("queue", queue_do(queue, IOCB_CMD_PREAD, fd, got, 40, 0));
        SAY(queue_do(queue, IOCB_CMD_PWRITE, fd, text, 5, 6));
        show("pread", pread(fd, got, 40, 0));
        end(fd, name);
    }
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        {"aio", by_aio},   {"list", by_list},       {"splice", by_splice},
        {"tee", by_tee},   {"copy", by_copy},       {"socket", by_socket},
        {"ring", by_ring}, {"arrival", by_arrival}, {"queue", by_queue}};
    many = argc > 2;
    return go(ways, sizeof ways / sizeof *ways, argc > 1 ? argv[1] : "");
}
