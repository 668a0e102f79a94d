/* `buffer FILE BYTES TOTAL WAY`: TOTAL bytes in calls of BYTES, from open to close. WAY is write,
 * read, stream-write or stream-read; read-compute computes on what each call gave, about 1 ns a
 * byte; read-again is a read; read-cold has the kernel forget the file first. Prints the seconds.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static volatile unsigned kept;
static void compute(const char *buf, size_t n)
{
    unsigned h = 0;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)buf[i]) * 16777619u;
    kept = h;
}

static void forget(const char *path)
{
    int fd = open(path, O_RDONLY);
    fsync(fd);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static int calls(const char *path, char *buf, size_t n, long times, int writes, int computes)
{
    int fd = open(path, writes ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, 0644);
    for (long i = 0; i < times; i++) {
        if ((writes ? write(fd, buf, n) : read(fd, buf, n)) != (ssize_t)n)
            return 1;
        if (computes)
            compute(buf, n);
    }
    return close(fd);
}

static int streams(const char *path, char *buf, size_t n, long times, int writes)
{
    FILE *f = fopen(path, writes ? "w" : "r");
    for (long i = 0; f && i < times; i++)
        if ((writes ? fwrite(buf, 1, n, f) : fread(buf, 1, n, f)) != n)
            return 1;
    return f ? fclose(f) : 1;
}

int main(int argc, char **argv)
{
    static char buf[1 << 20];
    if (argc != 5)
        return 2;
    size_t n = (size_t)atol(argv[2]);
    long times = atol(argv[3]) / (long)n;
    int writes = strstr(argv[4], "write") != NULL, stream = strncmp(argv[4], "stream", 6) == 0;
    memset(buf, 'b', sizeof buf);
    if (strstr(argv[4], "cold"))
        forget(argv[1]);
    double begin = now();
    if (stream ? streams(argv[1], buf, n, times, writes)
               : calls(argv[1], buf, n, times, writes, strstr(argv[4], "compute") != NULL)) {
        perror(argv[1]);
        return 1;
    }
    printf("%.6f\n", now() - begin);
    return 0;
}
