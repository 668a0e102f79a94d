/* The program of `brigade bench cache`: does steps that it reads, and says how long each call took.
 *
 *   cache SAMPLES LARGEST [PROCS]  < steps
 *
 * A step is one line, all numbers:  operation file bytes size at every sleep_ns fsync direct
 * limit_ns count.  `every`: bytes after which it sleeps; `fsync`: bytes after which it calls fsync;
 * 0 is never. Each step is answered by one line of JSON, times in nanoseconds from its begin; of
 * more than SAMPLES calls several in a row share a sample: [begin, sum, calls, longest].
 *
 * The buffer (LARGEST bytes) and all samples are touched before the program enters the cgroup whose
 * cgroup.procs is PROCS: what is charged there is the page cache, and little else. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef __NR_cachestat
#define __NR_cachestat 451 /* Linux 6.5; the same number on all architectures */
#endif

enum {
    PARTS = 512, /* of a file, in the answer to `look` */
    FSYNCS = 1 << 16,
    AGAIN_NS = 10000000
};

struct step {
    char operation[16], file[64];
    uint64_t bytes, size, at, every, sleep_ns, fsync, direct, limit_ns, count;
};

struct sample {
    uint64_t begin, sum, calls, longest;
};

static struct sample *samples, *fsyncs;
static uint64_t samples_most, samples_used, fsyncs_used, random_state = 88172645463325252u;
static char *buffer;
static long page;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what, const char *name)
{
    fprintf(stderr, "%s %s: %s\n", what, name, strerror(errno));
    exit(1);
}

static uint64_t chance(uint64_t below)
{
    random_state ^= random_state << 13; /* Marsaglia's xorshift64 */
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static void pause_ns(uint64_t ns)
{
    struct timespec left = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    while (nanosleep(&left, &left) && errno == EINTR)
        ;
}

static int opened(const struct step *s, int flags)
{
    int fd = open(s->file, flags | (s->direct ? O_DIRECT : 0) | O_CLOEXEC, 0600);
    if (fd < 0)
        die("open", s->file);
    return fd;
}

/* Makes room for more samples: every two become one. */
static void halve_samples(void)
{
    uint64_t used = samples_used / 2;
    for (uint64_t i = 0; i < used; i++) {
        struct sample *a = &samples[2 * i], *b = a + 1;
        uint64_t longest = a->longest > b->longest ? a->longest : b->longest;
        samples[i] = (struct sample){a->begin, a->sum + b->sum, a->calls + b->calls, longest};
    }
    if (samples_used % 2)
        samples[used++] = samples[samples_used - 1];
    samples_used = used;
}

static void print_samples(const char *name, const struct sample *list, uint64_t used)
{
    printf(",\"%s\":[", name);
    for (uint64_t i = 0; i < used; i++)
        printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", i ? "," : "", list[i].begin,
               list[i].sum, list[i].calls, list[i].longest);
    printf("]");
}

static void synced(int fd, const struct step *s, uint64_t begin)
{
    uint64_t before = now_ns();
    if (fsync(fd))
        die("fsync", s->file);
    if (fsyncs_used < FSYNCS) {
        uint64_t took = now_ns() - before;
        fsyncs[fsyncs_used++] = (struct sample){before - begin, took, 1, took};
    }
}

/* One call's bytes, all of them when it writes. A cgroup of version 1 slows no writer down, so a
 * write may find its memory full of dirty pages (ENOMEM): it is begun again a little later. */
static ssize_t all_of(int fd, const struct step *s, int writing, uint64_t *refused)
{
    uint64_t done = 0;
    if (!writing)
        return read(fd, buffer, s->size);
    while (done < s->size) {
        ssize_t got = write(fd, buffer + done, s->size - done);
        if (got >= 0) {
            done += (uint64_t)got;
        } else if (errno == ENOMEM) {
            ++*refused;
            pause_ns(AGAIN_NS);
        } else {
            return -1;
        }
    }
    return (ssize_t)done;
}

/* Writes or reads `bytes` from `at`, in calls of `size`. A read that has a time to fill begins anew
 * where the file ends. */
static void moved(const struct step *s, int writing)
{
    uint64_t each = 1, done = 0;
    uint64_t since_sleep = 0, since_fsync = 0, in_sample = 0, refused = 0;
    samples_used = fsyncs_used = 0;
    int fd = opened(s, writing ? O_WRONLY | O_CREAT : O_RDONLY);
    if (lseek(fd, (off_t)s->at, SEEK_SET) < 0)
        die("seek", s->file);
    uint64_t begin = now_ns();
    while (done + s->size <= s->bytes) {
        uint64_t before = now_ns();
        ssize_t got = all_of(fd, s, writing, &refused);
        uint64_t after = now_ns(), took = after - before;
        if (got < 0)
            die(writing ? "write" : "read", s->file);
        if (!got && !(s->limit_ns && done && lseek(fd, (off_t)s->at, SEEK_SET) >= 0))
            break;
        done += (uint64_t)got;
        if (!in_sample && samples_used == samples_most) {
            halve_samples();
            each *= 2;
        }
        if (!in_sample)
            samples[samples_used++] = (struct sample){before - begin, 0, 0, 0};
        struct sample *sample = &samples[samples_used - 1];
        sample->sum += took;
        sample->calls++;
        sample->longest = took > sample->longest ? took : sample->longest;
        in_sample = (in_sample + 1) % each;
        if (s->fsync && (since_fsync += (uint64_t)got) >= s->fsync) {
            synced(fd, s, begin);
            since_fsync = 0;
        }
        if (s->every && (since_sleep += (uint64_t)got) >= s->every) {
            pause_ns(s->sleep_ns);
            since_sleep = 0;
        }
        if (s->limit_ns && after - begin > s->limit_ns)
            break;
    }
    uint64_t moved_ns = now_ns() - begin;
    if (close(fd))
        die("close", s->file);
    uint64_t all_ns = now_ns() - begin;
    printf(",\"bytes\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"close_ns\":%" PRIu64, done, all_ns,
           all_ns - moved_ns);
    if (refused)
        printf(",\"refused\":%" PRIu64, refused);
    print_samples("samples", samples, samples_used);
    if (s->fsync)
        print_samples("fsyncs", fsyncs, fsyncs_used);
}

static unsigned char *residency(int fd, uint64_t bytes, void **mapped)
{
    uint64_t pages = (bytes + (uint64_t)page - 1) / (uint64_t)page;
    unsigned char *found = malloc(pages);
    *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (!found || *mapped == MAP_FAILED || mincore(*mapped, bytes, found))
        die("mincore", "of a file");
    return found;
}

/* Which part of a file is cached: of each of at most PARTS parts, how many pages. */
static void looked(const struct step *s)
{
    struct {
        uint64_t offset, length;
    } range = {0, 0};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently;
    } stat;
    int fd = opened(s, O_RDONLY);
    struct stat about;
    if (fstat(fd, &about) || !about.st_size)
        die("look", s->file);
    void *mapped;
    unsigned char *found = residency(fd, (uint64_t)about.st_size, &mapped);
    uint64_t pages = ((uint64_t)about.st_size + (uint64_t)page - 1) / (uint64_t)page;
    uint64_t parts = pages < PARTS ? pages : PARTS;
    printf(",\"bytes\":%" PRIu64 ",\"pages\":%" PRIu64 ",\"parts\":[", (uint64_t)about.st_size,
           pages);
    for (uint64_t part = 0; part < parts; part++) {
        uint64_t here = 0;
        for (uint64_t i = part * pages / parts; i < (part + 1) * pages / parts; i++)
            here += found[i] & 1;
        printf("%s%" PRIu64, part ? "," : "", here);
    }
    printf("]");
    if (!syscall(__NR_cachestat, fd, &range, &stat, 0))
        printf(",\"cachestat\":{\"cached\":%" PRIu64 ",\"dirty\":%" PRIu64 ",\"writeback\":%" PRIu64
               ",\"evicted\":%" PRIu64 "}",
               stat.cached, stat.dirty, stat.writeback, stat.evicted);
    munmap(mapped, (size_t)about.st_size);
    free(found);
    close(fd);
}

/* Times reads of single pages, one in each of `count` parts of a file; says beside each whether
 * mincore had it before: [offset, ns, 0 or 1]. */
static void probed(const struct step *s)
{
    int fd = opened(s, O_RDONLY);
    struct stat about;
    if (fstat(fd, &about) || !about.st_size)
        die("probe", s->file);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM); /* reads a page, and nothing ahead */
    uint64_t pages = (uint64_t)about.st_size / (uint64_t)page;
    uint64_t count = s->count < pages ? s->count : pages;
    void *mapped;
    unsigned char *found = residency(fd, (uint64_t)about.st_size, &mapped);
    munmap(mapped, (size_t)about.st_size);
    printf(",\"bytes\":%" PRIu64 ",\"pages\":[", (uint64_t)about.st_size);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t first = i * pages / count, past = (i + 1) * pages / count;
        uint64_t at = first + chance(past - first), before = now_ns();
        if (pread(fd, buffer, (size_t)page, (off_t)(at * (uint64_t)page)) < 0)
            die("read", s->file);
        printf("%s[%" PRIu64 ",%" PRIu64 ",%d]", i ? "," : "", at * (uint64_t)page,
               now_ns() - before, found[at] & 1);
    }
    printf("]");
    free(found);
    close(fd);
}

static void whole(const struct step *s)
{
    uint64_t begin = now_ns();
    if (!strcmp(s->operation, "remove")) {
        if (unlink(s->file))
            die("remove", s->file);
    } else if (!strcmp(s->operation, "sleep")) {
        pause_ns(s->sleep_ns);
    } else {
        int fd = open(s->file, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            die("open", s->file);
        if (fsync(fd))
            die("fsync", s->file);
        if (!strcmp(s->operation, "drop") && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
            die("drop", s->file);
        close(fd);
    }
    printf(",\"ns\":%" PRIu64, now_ns() - begin);
}

static void enter(const char *procs)
{
    int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, "0", 1) != 1)
        die("enter", procs);
    close(fd);
}

int main(int argc, char **argv)
{
    struct step s;
    if (argc < 3)
        return 2;
    page = sysconf(_SC_PAGESIZE);
    samples_most = strtoull(argv[1], NULL, 10);
    uint64_t largest = strtoull(argv[2], NULL, 10);
    size_t room = (samples_most + 1) * sizeof *samples;
    samples = malloc(room);
    fsyncs = malloc(FSYNCS * sizeof *fsyncs);
    if (!samples || !fsyncs || posix_memalign((void **)&buffer, 1 << 20, largest))
        die("memory", "for samples");
    memset(samples, 1, room);
    memset(fsyncs, 1, FSYNCS * sizeof *fsyncs);
    for (uint64_t i = 0; i < largest; i++)
        buffer[i] = (char)chance(256);
    if (argc > 3)
        enter(argv[3]);
    while (scanf("%15s %63s %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
                 " %" SCNu64 " %" SCNu64 " %" SCNu64,
                 s.operation, s.file, &s.bytes, &s.size, &s.at, &s.every, &s.sleep_ns, &s.fsync,
                 &s.direct, &s.limit_ns, &s.count) == 11) {
        printf("{\"begin_ns\":%" PRIu64, now_ns());
        if (!strcmp(s.operation, "write") || !strcmp(s.operation, "read"))
            moved(&s, s.operation[0] == 'w');
        else if (!strcmp(s.operation, "look"))
            looked(&s);
        else if (!strcmp(s.operation, "probe"))
            probed(&s);
        else
            whole(&s);
        printf("}\n");
        fflush(stdout);
    }
    return 0;
}
