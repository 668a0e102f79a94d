/* Random programs of I/O calls, the same for the same seed: `calls_driver SEED STEPS THREADS` in an
 * empty folder. Prints what each call returned, with errno and a sum of the bytes it gave, and in
 * the end the bytes of all files. What it prints may not depend on whether it is buffered.
 *
 * Each thread has files of its own. The name `n.txt`
 * matches no pattern of the tests.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLOTS 6
#define STREAMS 2
#define FURTHEST 300000

struct program {
    uint64_t random;
    int thread, many, steps, slot[SLOTS];
    FILE *stream[STREAMS];
    char *out;
    size_t out_n;
    FILE *log;
    char buf[70000];
};

static unsigned pick(struct program *p, unsigned n)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((p->random >> 33) % n);
}
static uint32_t sum(const void *data, long n)
{
    uint32_t h = 2166136261u;
    for (long i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)data)[i]) * 16777619u;
    return h;
}
static void said(struct program *p, const char *what, long r, int err, uint32_t h)
{
    if (p->many && r > 0 && (strstr(what, "open") || strstr(what, "dup")))
        r = 0; /* which number it got depends on the other threads */
    fprintf(p->log, "%d %s %ld %d %08x\n", p->thread, what, r, r < 0 ? err : 0, h);
}
#define DO(what, call)               \
    do {                             \
        errno = 0;                   \
        long r_ = (long)(call);      \
        said(p, what, r_, errno, 0); \
    } while (0)

static const char *const kinds[] = {"a.dat", "b.dat", "c.dat", "n.txt"};
static const char *name(struct program *p)
{
    static __thread char text[4][64];
    static __thread unsigned at;
    char *t = text[at++ % 4];
    snprintf(t, 64, "t%d-%s", p->thread, kinds[pick(p, 4)]);
    return t;
}
static size_t some_bytes(struct program *p)
{
    static const unsigned most[] = {8, 100, 1000, 5000, 20000, 70000};
    size_t n = pick(p, most[pick(p, 6)]);
    for (size_t i = 0; i < n; i += 1 + i / 16)
        p->buf[i] = (char)pick(p, 256);
    return n;
}
static off_t some_offset(struct program *p)
{
    return pick(p, 8) ? (off_t)pick(p, FURTHEST) : (off_t)pick(p, 4096);
}
static void close_slot(struct program *p, int i)
{
    if (p->slot[i] >= 0)
        DO("close", close(p->slot[i]));
    p->slot[i] = -1;
}
static int child_ended(pid_t pid)
{
    int status = -1;
    waitpid(pid, &status, 0);
    return status;
}

/* Without its number, which differs where our library has descriptors of its own open: none. */
static void open_slot(struct program *p, int i)
{
    static const int modes[] = {O_RDWR, O_RDWR, O_RDWR | O_APPEND, O_WRONLY, O_RDONLY, O_RDWR};
    static const int more[] = {0, 0, O_TRUNC, O_CLOEXEC, O_DSYNC, O_EXCL, 0, 0};
    close_slot(p, i);
    int flags = O_CREAT | modes[pick(p, 6)] | more[pick(p, 8)];
    errno = 0;
    p->slot[i] = pick(p, 4) ? open(name(p), flags, 0644) : openat(AT_FDCWD, name(p), flags, 0644);
    said(p, "open", p->slot[i], errno, (uint32_t)flags);
}

static void transfer(struct program *p, int fd, unsigned which)
{
    size_t n = some_bytes(p);
    struct iovec three[3] = {
        {p->buf, n / 3}, {p->buf + n / 3, n / 4}, {p->buf + n / 3 + n / 4, n / 5}};
    off_t at = some_offset(p);
    errno = 0;
    long r;
    switch (which) {
    case 0:
    case 1: DO("write", write(fd, p->buf, n)); return;
    case 2: DO("pwrite", pwrite(fd, p->buf, n, at)); return;
    case 3: DO("writev", writev(fd, three, 3)); return;
    case 4: DO("pwritev", pwritev(fd, three, 3, at)); return;
    case 5:
    case 6:
        r = read(fd, p->buf, n);
        said(p, "read", r, errno, sum(p->buf, r));
        return;
    case 7:
        r = pread(fd, p->buf, n, at);
        said(p, "pread", r, errno, sum(p->buf, r));
        return;
    case 8: r = readv(fd, three, 3); break;
    default: r = preadv(fd, three, 3, at);
    }
    int err = errno;
    long first = r < 0 ? 0 : r;
    said(p, which == 8 ? "readv" : "preadv", r, err, sum(p->buf, first));
}

/* Many small ones in a row, for which the library exists. */
static void burst(struct program *p, int fd)
{
    unsigned n = 1 + pick(p, 60), size = 1 + pick(p, 3000), writes = pick(p, 2);
    if (pick(p, 2))
        DO("lseek", lseek(fd, some_offset(p), SEEK_SET));
    for (unsigned i = 0; i < n; i++) {
        errno = 0;
        long r = writes ? write(fd, p->buf + i, size) : read(fd, p->buf, size);
        said(p, writes ? "burst write" : "burst read", r, errno, writes ? 0 : sum(p->buf, r));
        if (r <= 0)
            break;
    }
}

static void status(struct program *p, int fd)
{
    struct stat st = {0};
    struct statx stx = {0};
    errno = 0;
    switch (pick(p, 5)) {
    case 0: {
        int r = fstat(fd, &st);
        said(p, "fstat", r, errno, (uint32_t)st.st_size);
        return;
    }
    case 1: {
        int r = stat(name(p), &st);
        said(p, "stat", r, errno, (uint32_t)st.st_size);
        return;
    }
    case 2: {
        int r = statx(AT_FDCWD, name(p), 0, STATX_SIZE, &stx);
        said(p, "statx", r, errno, (uint32_t)stx.stx_size);
        return;
    }
    case 3: DO("end", lseek(fd, -(off_t)pick(p, 100), SEEK_END)); return;
    default: DO("where", lseek(fd, (off_t)pick(p, 300) - 150, SEEK_CUR));
    }
}

static void unusual(struct program *p, int fd)
{
    int i = (int)pick(p, SLOTS), j = (int)pick(p, SLOTS);
    if (p->slot[i] == fd) /* closed, its number may be another thread's at once */
        i = (i + 1) % SLOTS;
    switch (pick(p, 22)) {
    case 0: DO("ftruncate", ftruncate(fd, some_offset(p))); return;
    case 1: DO("truncate", truncate(name(p), some_offset(p))); return;
    case 2: DO("fsync", fsync(fd)); return;
    case 3: DO("fallocate", posix_fallocate(fd, some_offset(p), 1 + (off_t)pick(p, 5000))); return;
    case 4:
        close_slot(p, i);
        DO("dup", p->slot[i] = dup(fd));
        return;
    case 5:
        if (p->slot[j] >= 0 && p->slot[i] >= 0)
            DO("dup2", dup2(p->slot[i], p->slot[j]));
        return;
    case 6:
        close_slot(p, i);
        DO("dupfd", p->slot[i] = fcntl(fd, F_DUPFD_CLOEXEC, 30));
        return;
    case 7: DO("rename", rename(name(p), name(p))); return;
    case 8: DO("unlink", unlink(name(p))); return;
    case 9: DO("link", link(name(p), name(p))); return;
    case 10: {
        if (pick(p, 3))
            return;
        struct stat st;
        if (fstat(fd, &st) || st.st_size == 0)
            return;
        char *at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
        said(p, "mmap", at == MAP_FAILED ? -1 : 0, errno,
             at == MAP_FAILED ? 0 : sum(at, st.st_size));
        if (at != MAP_FAILED)
            munmap(at, (size_t)st.st_size);
        return;
    }
    case 11:
        if (!pick(p, 3)) {
            DO("flock", flock(fd, LOCK_EX));
            DO("flock", flock(fd, LOCK_UN));
        }
        return;
    case 12: DO("sendfile", pick(p, 3) ? 0 : sendfile(fd, p->slot[i], NULL, pick(p, 5000))); return;
    case 13: {
        if (pick(p, 4))
            return;
        pid_t pid = fork();
        if (pid == 0) {
            char c[8];
            long r = write(fd, "child", 5);
            r += read(fd, c, 3);
            lseek(fd, 7, SEEK_CUR);
            _exit((int)r & 63);
        }
        DO("fork", child_ended(pid));
        return;
    }
    case 14: {
        if (pick(p, 4))
            return;
        pid_t pid = vfork();
        if (pid == 0) {
            execl("/bin/sh", "sh", "-c", "wc -c < t0-a.dat >/dev/null 2>&1; exit 3", (char *)NULL);
            _exit(9);
        }
        DO("vfork", child_ended(pid));
        return;
    }
    case 15: {
        char text[200];
        snprintf(text, sizeof text, "printf more >> %s", name(p));
        if (!pick(p, 3))
            DO("system", system(text));
        return;
    }
    case 16: DO("efault", write(fd, (void *)8, 1 + pick(p, 3000))); return;
    case 17: DO("efault", read(fd, (void *)8, 1 + pick(p, 3000))); return;
    case 18: DO("negative", pwrite(fd, p->buf, 5, -1)); return;
    case 19: DO("negative", lseek(fd, -FURTHEST * 2, SEEK_CUR)); return;
    case 20: DO("hole", lseek(fd, some_offset(p), pick(p, 2) ? SEEK_DATA : SEEK_HOLE)); return;
    default:
        if (!pick(p, 3)) {
            int flags = fcntl(fd, F_GETFL);
            DO("setfl", fcntl(fd, F_SETFL, flags ^ O_APPEND));
        }
    }
}

static void streams(struct program *p)
{
    static const char *const modes[] = {"r", "w", "a", "r+", "w+", "a+"};
    int i = (int)pick(p, STREAMS);
    FILE *s = p->stream[i];
    if (!s || !pick(p, 12)) {
        if (s)
            DO("fclose", fclose(s));
        errno = 0;
        p->stream[i] = fopen(name(p), modes[pick(p, 6)]);
        said(p, "fopen", p->stream[i] ? 0 : -1, errno, 0);
        return;
    }
    size_t n = some_bytes(p);
    switch (pick(p, 10)) {
    case 0: DO("fwrite", fwrite(p->buf, 1, n, s)); break;
    case 1: {
        size_t r = fread(p->buf, 1, n, s);
        said(p, "fread", (long)r, 0, sum(p->buf, (long)r));
        break;
    }
    case 2: DO("fprintf", fprintf(s, "line %u\n", pick(p, 1000))); break;
    case 3: DO("fseek", fseek(s, some_offset(p), SEEK_SET)); break;
    case 4: DO("ftell", ftell(s)); break;
    case 5: DO("fflush", fflush(s)); break;
    case 6:
    case 7: {
        int c = getc(s);
        said(p, "getc", c, 0, 0);
        if (c != EOF && pick(p, 2))
            DO("ungetc", ungetc('x', s));
        break;
    }
    case 8: DO("fseek end", fseek(s, 0, SEEK_END)); break;
    default:
        if (fgets(p->buf, 300, s))
            said(p, "fgets", 0, 0, sum(p->buf, (long)strlen(p->buf)));
    }
    if (!pick(p, 20))
        rewind(s);
}

static void step(struct program *p)
{
    int i = (int)pick(p, SLOTS), fd = p->slot[i];
    unsigned what = pick(p, 100);
    if (fd < 0 || what < 4)
        open_slot(p, i);
    else if (what < 40)
        transfer(p, fd, pick(p, 10));
    else if (what < 58)
        burst(p, fd);
    else if (what < 66)
        DO("lseek", lseek(fd, some_offset(p), SEEK_SET));
    else if (what < 74)
        status(p, fd);
    else if (what < 84)
        unusual(p, fd);
    else if (what < 86)
        close_slot(p, i);
    else
        streams(p);
}

static void *run(void *argument)
{
    struct program *p = argument;
    p->log = open_memstream(&p->out, &p->out_n);
    memset(p->slot, -1, sizeof p->slot);
    for (int i = 0; i < p->steps; i++)
        step(p);
    for (int i = 0; i < SLOTS; i++)
        close_slot(p, i);
    for (int i = 0; i < STREAMS; i++)
        if (p->stream[i])
            DO("fclose", fclose(p->stream[i]));
    fclose(p->log);
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t seed = strtoull(argv[1], NULL, 10);
    int steps = atoi(argv[2]), n = argc > 3 ? atoi(argv[3]) : 1;
    pthread_t threads[8];
    static struct program programs[8];
    for (int i = 0; i < n; i++) {
        programs[i] = (struct program){
            .random = seed * 1000 + (uint64_t)i, .thread = i, .many = n > 1, .steps = steps};
        for (int k = 0; k < 10; k++)
            pick(&programs[i], 2);
    }
    if (n == 1)
        run(&programs[0]);
    else {
        for (int i = 0; i < n; i++)
            pthread_create(&threads[i], NULL, run, &programs[i]);
        for (int i = 0; i < n; i++)
            pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < n; i++)
        fwrite(programs[i].out, 1, programs[i].out_n, stdout);
    return 0;
}
