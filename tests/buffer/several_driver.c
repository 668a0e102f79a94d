/* `several_driver PATH HOW BYTES COUNT MEANWHILE`: four threads put COUNT records of BYTES each
 * into one file, by one descriptor; HOW is write, append, pwrite or writev. Meanwhile the main
 * thread does what the last word says, over and over. Then all records are looked for: prints how
 * many are there, and how many pieces are none. HOW read: they read a file of such records.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define BYTES_MOST 8192
#define COUNT_MOST 20000

static int fd, bytes, count, done;
static const char *path, *how;
static char seen[THREADS][COUNT_MOST];
static int n_seen, n_bad;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void fail(const char *what)
{
    perror(what);
    exit(9);
}

/* A record tells whose it is at both ends, and nothing else in between. */
static void fill(char *record, long thread, int i)
{
    char name[32];
    int n = snprintf(name, sizeof name, "%ld %d;", thread, i);
    memset(record, 'a' + (int)thread, (size_t)bytes);
    memcpy(record, name, (size_t)n);
    memcpy(record + bytes - n, name, (size_t)n);
}
static void look(const char *record, long n)
{
    char expected[BYTES_MOST];
    long thread = -1;
    int i = -1;
    pthread_mutex_lock(&lock);
    if (n == bytes && sscanf(record, "%ld %d;", &thread, &i) == 2 && thread >= 0 &&
        thread < THREADS && i >= 0 && i < count && !seen[thread][i]) {
        fill(expected, thread, i);
        seen[thread][i] = memcmp(record, expected, (size_t)bytes) == 0;
    }
    int good = thread >= 0 && i >= 0 && thread < THREADS && i < count && seen[thread][i] == 1;
    if (good)
        seen[thread][i] = 2; /* once */
    n_seen += good;
    n_bad += !good;
    pthread_mutex_unlock(&lock);
}

static void put(long thread, int i)
{
    char record[BYTES_MOST];
    fill(record, thread, i);
    struct iovec two[] = {{record, (size_t)bytes / 3},
                          {record + bytes / 3, (size_t)(bytes - bytes / 3)}};
    off_t at = ((off_t)i * THREADS + thread) * bytes;
    ssize_t r = how[0] == 'p'            ? pwrite(fd, record, (size_t)bytes, at)
                : !strcmp(how, "writev") ? writev(fd, two, 2)
                                         : write(fd, record, (size_t)bytes);
    if (r != bytes)
        fail("write");
    if (how[0] == 'p' && i % 4 == 0) {
        char back[BYTES_MOST]; /* what this thread has written, now or before, it reads */
        int before = i % 16 ? i / 16 * 16 : i;
        fill(record, thread, before);
        at = ((off_t)before * THREADS + thread) * bytes;
        if (pread(fd, back, (size_t)bytes, at) != bytes || memcmp(back, record, (size_t)bytes))
            fail("pread");
    }
}

static void *run(void *argument)
{
    long thread = (long)argument;
    char record[BYTES_MOST];
    ssize_t n;
    if (how[0] == 'r')
        while ((n = read(fd, record, (size_t)bytes)) > 0)
            look(record, n);
    for (int i = 0; how[0] != 'r' && i < count; i++)
        put(thread, i);
    __atomic_add_fetch(&done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void meanwhile(const char *what)
{
    struct stat st;
    int other;
    if (!strcmp(what, "close")) {
        if ((other = dup(fd)) < 0 || close(other))
            fail("close");
    } else if (!strcmp(what, "open")) {
        if ((other = open(path, O_RDWR)) < 0 || fstat(other, &st) || close(other))
            fail("open");
    } else if (!strcmp(what, "read")) { /* near its end, where bytes come */
        char some[100];
        fstat(fd, &st);
        off_t back = 20000 < st.st_size ? 20000 : st.st_size;
        if ((other = open(path, O_RDONLY)) < 0 || lseek(other, -back, SEEK_END) < 0)
            fail("open");
        for (int i = 0; i < 400 && read(other, some, sizeof some) > 0; i++)
            continue;
        close(other);
    } else if (!strcmp(what, "sync")) {
        if (fsync(fd) || stat(path, &st))
            fail("fsync");
    } else if (!strcmp(what, "fork")) {
        usleep(20000); /* so that something is buffered */
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        waitpid(pid, NULL, 0);
    } else if (!strcmp(what, "system")) {
        usleep(20000);
        if (system("true"))
            fail("system");
    }
    if (strcmp(what, "read"))
        usleep(200);
}

static void prepare(void)
{
    static char record[BYTES_MOST];
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (long i = 0; i < (long)count * THREADS; i++) {
        fill(record, i % THREADS, (int)(i / THREADS));
        if (write(out, record, (size_t)bytes) != bytes)
            fail("prepare");
    }
    close(out);
}

static void look_at_all(void)
{
    char record[BYTES_MOST];
    ssize_t n;
    int in = open(path, O_RDONLY);
    while ((n = read(in, record, (size_t)bytes)) > 0)
        look(record, n);
    close(in);
}

int main(int argc, char **argv)
{
    if (argc < 6)
        return 2;
    path = argv[1], how = argv[2], bytes = atoi(argv[3]), count = atoi(argv[4]);
    int cut = O_CREAT | O_TRUNC, append = !strcmp(how, "append") ? O_APPEND : 0;
    if (how[0] == 'r')
        prepare();
    fd = open(path, O_RDWR | (how[0] == 'r' ? 0 : cut | append), 0644);
    pthread_t threads[THREADS];
    for (long i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    while (__atomic_load_n(&done, __ATOMIC_SEQ_CST) < THREADS)
        meanwhile(argv[5]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (close(fd))
        fail("close");
    if (how[0] != 'r')
        look_at_all();
    printf("%d of %d, %d bad\n", n_seen, THREADS * count, n_bad);
    return 0;
}
