/* Memory that two processes share: pages that are about to be touched come many at a time. */
#include "world/area.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "claim.h"

enum {
    PAGE = 4096,
    PAGES = 1024
};

static long faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
}

/* Faults of touching every page of [from, from + PAGES / 2) pages, after it was asked for. */
static long touch(struct io_area *area, size_t from, int asked)
{
    if (asked)
        area_have(area, (from + PAGES / 2) * PAGE);
    long before = faults();
    for (size_t i = from; i < from + PAGES / 2; i++)
        area->room[i * PAGE] = (char)(i + 1);
    return faults() - before;
}

/* A sanitizer keeps pages of its own about each of ours. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

static int kernel_can(void)
{
    char *page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return madvise(page, PAGE, 22) == 0; /* MADV_POPULATE_READ */
}

static void second(const struct area_token *token, int asked)
{
    struct io_area *area;
    int rc = area_open(token, 1, 2, (size_t)PAGES * PAGE, &area);
    CHECK(rc == 0, "%d", rc);
    if (rc)
        _exit(1);
    for (size_t i = 0; i < PAGES / 2; i++)
        CHECK(area->room[i * PAGE] == (char)(i + 1), "page %zu", i);
    long n = touch(area, 0, asked) + touch(area, PAGES / 2, asked);
    CHECK(!COUNTS || (asked ? n == 0 : n > PAGES / 4), "the second of two took %ld faults", n);
    _exit(failures != 0);
}

static void pages_are_there_before_they_are_touched(int asked)
{
    struct io_area *area;
    struct area_token token;
    int status = -1;
    CHECK(area_create(2, (size_t)PAGES * PAGE, &area, &token) == 0, "no memory");
    long n = touch(area, 0, asked);
    pid_t child = fork();
    if (child == 0)
        second(&token, asked);
    waitpid(child, &status, 0);
    CHECK(status == 0, "%d", status);
    CHECK(!COUNTS || (asked ? n == 0 : n >= PAGES / 2), "the first of two took %ld faults", n);
    area_seal(area);
    area_destroy(area);
}

int main(void)
{
    pages_are_there_before_they_are_touched(0);
    if (kernel_can())
        pages_are_there_before_they_are_touched(1);
    return failures != 0;
}
