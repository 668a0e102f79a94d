/* What others_driver and numbers_driver share: calls that are hooked, before and after each of the
 * ways that they have. */
#ifndef OTHERS_H
#define OTHERS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOT_HERE 77
#define SAY(call)                                                         \
    do {                                                                  \
        errno = 0;                                                        \
        long r_ = (long)(call);                                           \
        printf("%s: %ld %s\n", #call, r_, r_ < 0 ? strerror(errno) : ""); \
    } while (0)

static char got[64];

static void show(const char *what, long n)
{
    printf("%s: %ld '%.*s'\n", what, n, n > 0 ? (int)n : 0, got);
    memset(got, 0, sizeof got);
}
static int opened(const char *name)
{
    return open(name, O_RDWR | O_CREAT, 0600);
}

/* By hooked calls, before and after. */
static void begin(int fd)
{
    SAY(write(fd, "0123456789", 10));
    SAY(write(fd, "abcdefghij", 10));
}
static void end(int fd, const char *name)
{
    SAY(write(fd, "end", 3));
    SAY(lseek(fd, 0, SEEK_CUR));
    show("pread", pread(fd, got, 40, 0));
    int again = open(name, O_RDONLY);
    show("another", read(again, got, 40));
    close(again);
    SAY(close(fd));
}

struct way {
    const char *name;
    void (*go)(void);
};

/* The exit code of a driver. */
static int go(const struct way *ways, size_t n, const char *name)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(name, ways[i].name)) {
            ways[i].go();
            return 0;
        }
    return 2;
}

#endif
