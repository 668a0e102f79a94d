/* Steps (steps.h) of ranks on several nodes (hint share=no): what one wrote, others see when they
 * must. Beneath late_writes.c, or BRIGADE_FAULT says which rank cannot close the file. */
#include <unistd.h>

#include "steps.h"

#define CREATE (SHMEM_MODE_CREATE | SHMEM_MODE_RDWR)
#define CREATE_ONLY (SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY)

/* Of each 1000 bytes from there on each rank has 100, and what lies between stays. */
#define ROWS_FROM 70000
#define ROWS 100

static int write_rows(SHMEM_File f, char fill)
{
    static char rows[100 * ROWS];
    memset(rows, fill, sizeof rows);
    int code = see_rows(f, ROWS_FROM + 300 * job.me, 1000);
    return code ? code
                : SHMEM_File_write_at_all(f, 0, rows, sizeof rows, SHMEM_CHAR, SHMEM_STATUS_IGNORE);
}

/* Those of this rank in turns. */
static void check_blocks(SHMEM_File f, int together, char fill)
{
    static char back[BLOCK];
    SHMEM_Status status;
    size_t same = 0;
    memset(back, 0, sizeof back);
    int code = see_rows(f, 100 * job.me, 100 * job.all);
    code = code       ? code
           : together ? SHMEM_File_read_at_all(f, 0, back, BLOCK, SHMEM_CHAR, &status)
                      : SHMEM_File_read_at(f, 0, back, BLOCK, SHMEM_CHAR, &status);
    if (told("read", code))
        return;
    while (same < BLOCK && back[same] == fill)
        same++;
    CHECK(status.bytes == BLOCK && same == BLOCK, "%s: %ld bytes, byte %zu is wrong", step,
          (long)status.bytes, same);
}

/* PE 1 writes its own, which then is read for it, and has others' bytes around it. */
static void write_alone(const char *publish)
{
    static char mine[BLOCK], back[BLOCK];
    SHMEM_File f = opened(CREATE, "publish", publish);
    SHMEM_Status status;
    memset(mine, 'm', sizeof mine);
    told("view", see_rows(f, 100 * job.me, 100 * job.all));
    if (job.me == 1)
        told("alone", SHMEM_File_write_at(f, 0, mine, BLOCK, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    if (!told("read", SHMEM_File_read_at_all(f, 0, back, BLOCK, SHMEM_CHAR, &status)) &&
        job.me == 1)
        CHECK(status.bytes == BLOCK && !memcmp(mine, back, BLOCK), "%ld bytes, or others",
              (long)status.bytes);
    memset(mine, 'M', sizeof mine);
    if (job.me == 1)
        told("alone", SHMEM_File_write_at(f, 0, mine, BLOCK, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("rows", write_rows(f, 'r'));
    told("close", SHMEM_File_close(&f));
}

static void step_alone(void)
{
    write_alone("no");
}

static void step_alone_published(void)
{
    write_alone("new");
}

/* Windows of the second call have other owners than those of the first. */
static void step_twice(void)
{
    SHMEM_File f = opened(CREATE_ONLY, "publish", "new");
    told("first", write_blocks(f, 'a'));
    told("second", write_rows(f, 'r'));
    told("close", SHMEM_File_close(&f));
}

/* What no call reaches again. */
static void step_beside(void)
{
    static char mine[1000];
    SHMEM_File f = opened(CREATE_ONLY, "publish", "new");
    memset(mine, 'z', sizeof mine);
    told("first", write_blocks(f, 'a'));
    told("view", SHMEM_File_set_view(f, 0, SHMEM_BYTE, SHMEM_BYTE, "native", SHMEM_INFO_NULL));
    SHMEM_Offset end = (SHMEM_Offset)BLOCK * job.all + 1000 * job.me;
    told("second", SHMEM_File_write_at_all(f, end, mine, 1000, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("close", SHMEM_File_close(&f));
}

/* What another has written for a PE, it reads alone. */
static void step_back(void)
{
    SHMEM_File f = opened(CREATE, "publish", "new");
    told("first", write_blocks(f, 'a'));
    check_blocks(f, 0, 'a');
    told("close", SHMEM_File_close(&f));
}

/* PE 1 has looked at the file, and writes nothing when the others change it. */
static void step_looks_again(void)
{
    static char mine[2 * BLOCK];
    SHMEM_File f = opened(CREATE, NULL, NULL);
    SHMEM_Offset at = job.me == 2 ? BLOCK : 0;
    SHMEM_Count n = job.me == 1 ? 0 : job.me == 2 ? 2 * BLOCK : BLOCK;
    told("first", write_blocks(f, 'a'));
    check_blocks(f, 1, 'a');
    memset(mine, 'n', sizeof mine);
    told("view", SHMEM_File_set_view(f, 0, SHMEM_BYTE, SHMEM_BYTE, "native", SHMEM_INFO_NULL));
    told("second", SHMEM_File_write_at_all(f, at, mine, n, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    check_blocks(f, 1, 'n');
    told("close", SHMEM_File_close(&f));
}

/* Of a file that is there, whose copy is published. */
static void step_changed(void)
{
    SHMEM_File f = opened(SHMEM_MODE_RDWR, "publish", "yes");
    check_blocks(f, 0, 'u');
    told("rows", write_rows(f, 'r'));
    told("close", SHMEM_File_close(&f));
}

/* What PE 1 has written is cut off, and does not come back. */
static void step_cut(void)
{
    static char mine[1000];
    SHMEM_File f = opened(CREATE, NULL, NULL);
    memset(mine, 's', sizeof mine);
    if (job.me == 1)
        told("alone", SHMEM_File_write_at(f, 0, mine, 1000, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("set_size", SHMEM_File_set_size(f, 500));
    told("close", SHMEM_File_close(&f));
}

/* PE 0 changes what all have read, by a file of its own. */
static void step_synced(void)
{
    static char all[3 * BLOCK];
    SHMEM_File f = opened(SHMEM_MODE_RDONLY, NULL, NULL), own;
    check_blocks(f, 0, 'u');
    told("wait", SHMEM_File_set_view(f, 0, SHMEM_BYTE, SHMEM_BYTE, "native", SHMEM_INFO_NULL));
    memset(all, 'v', sizeof all);
    if (job.me == 0) {
        SHMEM_File_open(SHMEM_COMM_SELF, path, SHMEM_MODE_WRONLY, SHMEM_INFO_NULL, &own);
        told("own", SHMEM_File_write_at(own, 0, all, sizeof all, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
        told("close", SHMEM_File_close(&own));
    }
    told("sync", SHMEM_File_sync(f));
    check_blocks(f, 0, 'v');
    told("close", SHMEM_File_close(&f));
}

int main(int argc, char **argv)
{
    static const struct step steps[] = {
        {"alone", step_alone},  {"alone-published", step_alone_published},
        {"twice", step_twice},  {"beside", step_beside},
        {"back", step_back},    {"looks-again", step_looks_again},
        {"cut", step_cut},      {"changed", step_changed},
        {"synced", step_synced}};
    steps_run(argc, argv, steps, sizeof steps / sizeof *steps);
}
