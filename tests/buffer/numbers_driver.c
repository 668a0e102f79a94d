/* `numbers_driver WAY`, as others_driver: calls that name descriptors go by the numbers of system
 * calls. */
#define _GNU_SOURCE
#include "others.h"

#include <sys/syscall.h>

#define CLOSE_BY_EXEC 4 /* CLOSE_RANGE_CLOEXEC */
#ifndef SYS_close_range
#define SYS_close_range 436
#endif

static void by_number(void)
{
    int fd = opened("a.dat");
    begin(fd);
    int other = (int)syscall(SYS_openat, AT_FDCWD, "a.dat", O_RDWR);
    show("read", read(other, got, 40));
    SAY(write(fd, "more", 4));
    show("read", read(other, got, 40));
    SAY(write(other, "!", 1));
    close(other);
    end(fd, "a.dat");
}

/* In the place of a descriptor another one, of a file that is not buffered and of one that is. */
static void by_onto(void)
{
    int fd = opened("a.dat"), other = opened("b.dat"), plain = opened("plain");
    begin(fd);
    begin(other);
    SAY(syscall(SYS_dup3, plain, other, 0) - other);
    SAY(write(other, "onto", 4));
    SAY(lseek(plain, 0, SEEK_CUR));
    close(other);
    other = opened("b.dat");
    show("read", read(other, got, 40));
    SAY(write(other, "more", 4));
#ifdef SYS_dup2
    SAY(syscall(SYS_dup2, fd, other) - other);
#else
    SAY(syscall(SYS_dup3, fd, other, O_CLOEXEC) - other);
#endif
    SAY(write(other, "again", 5));
    SAY(lseek(fd, 0, SEEK_CUR));
    close(other);
    end(fd, "a.dat");
}
/* Two descriptors, one behind the other, and none that is only to be closed by exec. */
static void by_range(void)
{
    int fd = opened("a.dat"), other = opened("b.dat");
    begin(fd);
    begin(other);
    SAY(syscall(SYS_close_range, fd, other, CLOSE_BY_EXEC));
    SAY(write(fd, "more", 4));
    SAY(syscall(SYS_close_range, fd, other, 0));
    if (fcntl(other, F_GETFD) >= 0)
        exit(NOT_HERE);
    SAY(write(other, "closed", 6));
    fd = opened("a.dat");
    show("read", read(fd, got, 40));
    end(fd, "a.dat");
}

int main(int argc, char **argv)
{
    static const struct way ways[] = {
        {"number", by_number}, {"onto", by_onto}, {"range", by_range}};
    return go(ways, sizeof ways / sizeof *ways, argc > 1 ? argv[1] : "");
}
