/* The fuzzer without a fuzzer: every seed, every file of a corpus, and many thousand mutations of
 * each that are the same in every run. Meant to be built with the address sanitizer.
 *
 *     replay MUTATIONS [CORPUS]     run them
 *     replay --write FOLDER         write the seeds there, for libFuzzer
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "check.h"
#include "fuzz_image.h"
#include "image/format.h"
#include "seeds.h"

static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* A place that matters: half of the time in the used part of the head, where structure lies. */
static size_t some_place(const struct seed *s)
{
    const struct brg_image_header *h = (const struct brg_image_header *)s->bytes;
    if (s->n < BRG_PAGE || next_random() % 4 == 0)
        return next_random() % s->n;
    if (next_random() % 8 == 0)
        return next_random() % sizeof *h;
    if (next_random() % 8 == 0 && h->table_off < s->n)
        return h->table_off + next_random() % (s->n - h->table_off);
    uint64_t span = h->index_bytes ? h->index_bytes : 1;
    size_t at = BRG_PAGE + next_random() % span;
    return at < s->n ? at : next_random() % s->n;
}

static void mutate(uint8_t *bytes, size_t *n, const struct seed *s)
{
    static const uint64_t values[] = {0,      1,          2,          0x7f,       0xff,
                                      0xffff, 0x7fffffff, 0xffffffff, UINT64_MAX, UINT64_MAX / 2,
                                      4096,   1u << 20};
    for (unsigned k = 1 + next_random() % 4; k > 0; k--) {
        size_t at = some_place(s);
        switch (next_random() % 6) {
        case 0: bytes[at] ^= (uint8_t)(1u << next_random() % 8); break;
        case 1: bytes[at] = (uint8_t)next_random(); break;
        case 2:
        case 3: { /* a number of 4 or 8 bytes, where numbers lie */
            size_t width = next_random() % 2 ? 4 : 8;
            uint64_t value = values[next_random() % (sizeof values / sizeof *values)];
            if (next_random() % 3 == 0)
                value = next_random() % 300;
            at -= at % width;
            if (at + width <= *n)
                memcpy(bytes + at, &value, width);
            break;
        }
        case 4: { /* one piece over another */
            size_t from = some_place(s), len = 1 + next_random() % 64;
            if (from + len <= *n && at + len <= *n)
                memmove(bytes + at, bytes + from, len);
            break;
        }
        default: /* cut, rarely: most inputs must get past the sizes */
            if (next_random() % 16 == 0)
                *n = 1 + next_random() % *n;
        }
    }
}

static void run_mutations(const struct seed *s, unsigned long mutations)
{
    for (unsigned long i = 0; i < mutations; i++) {
        uint8_t *bytes = malloc(s->n);
        size_t n = s->n;
        NEED(bytes);
        memcpy(bytes, s->bytes, n);
        if (i > 0)
            mutate(bytes, &n, s);
        LLVMFuzzerTestOneInput(bytes, n);
        free(bytes);
    }
}

static unsigned long run_corpus(const char *folder, unsigned long mutations)
{
    unsigned long files = 0;
    DIR *d = opendir(folder);
    NEED(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[4096];
        struct stat st;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        int fd = open(path, O_RDONLY);
        NEED(fd >= 0 && fstat(fd, &st) == 0);
        if (S_ISREG(st.st_mode) && st.st_size > 0) {
            struct seed s = {malloc((size_t)st.st_size), (size_t)st.st_size};
            NEED(s.bytes && brg_io_pread(fd, s.bytes, s.n, 0) == st.st_size);
            run_mutations(&s, mutations);
            free(s.bytes);
            files++;
        }
        close(fd);
    }
    closedir(d);
    return files;
}

static void write_seeds(const struct seed *seeds, const char *folder)
{
    for (int i = 0; i < SEEDS; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/seed-%d", folder, i);
        int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
        NEED(fd >= 0 && brg_io_pwrite(fd, seeds[i].bytes, seeds[i].n, 0, NULL) == 0);
        close(fd);
    }
}

int main(int argc, char **argv)
{
    struct seed seeds[SEEDS];
    NEED(argc >= 2);
    seeds_make(seeds);
    if (strcmp(argv[1], "--write") == 0 && argc == 3) {
        write_seeds(seeds, argv[2]);
    } else {
        unsigned long mutations = strtoul(argv[1], NULL, 10), files = 0;
        for (int i = 0; i < SEEDS; i++)
            run_mutations(&seeds[i], mutations);
        if (argc > 2)
            files = run_corpus(argv[2], mutations / 10 + 1);
        printf("%d seeds, %lu files of the corpus, %lu mutations of each seed\n", SEEDS, files,
               mutations);
    }
    for (int i = 0; i < SEEDS; i++)
        free(seeds[i].bytes);
    return failed_checks != 0;
}
