/* Steps (steps.h) that end as they should not, or that another step depends on. */
#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "steps.h"

/* The C library's, of which a disk may make one fail, and let the next end well. */
static int syncs_to_fail;

__attribute__((visibility("default"))) int fsync(int fd)
{
    if (syncs_to_fail == 0)
        return (int)syscall(SYS_fsync, fd);
    syncs_to_fail--;
    errno = EIO;
    return -1;
}

/* BRIGADE_FAULT says where it fails. */
static void step_write(void)
{
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, NULL, NULL);
    static char back[BLOCK];
    SHMEM_Status status;
    if (!told("write", write_blocks(f, 'a'))) {
        told("sync", SHMEM_File_sync(f));
        if (!told("read", SHMEM_File_read_at_all(f, 0, back, BLOCK, SHMEM_CHAR, &status)))
            CHECK(status.bytes == BLOCK && back[0] == 'a' && back[BLOCK - 1] == 'a', "%ld bytes",
                  (long)status.bytes);
    }
    told("close", SHMEM_File_close(&f));
}

/* What fails once is not published, whatever comes after. */
static void step_publish(void)
{
    int was = access(path, F_OK);
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, "publish", "yes");
    CHECK(access(path, F_OK) == was, "it is there already");
    told("write", write_blocks(f, 'b'));
    told("sync", SHMEM_File_sync(f));
    told("close", SHMEM_File_close(&f));
}

/* One sync fails; the one of publishing would not. */
static void step_one_sync(void)
{
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, "publish", "yes");
    told("write", write_blocks(f, 'b'));
    syncs_to_fail = job.me == 1;
    told("sync", SHMEM_File_sync(f));
    told("sync", SHMEM_File_sync(f));
    told("close", SHMEM_File_close(&f));
}

static void step_update(void)
{
    SHMEM_File f = opened(SHMEM_MODE_WRONLY, "publish", "yes");
    char one = 'c';
    int first = job.me == 0;
    told("write", SHMEM_File_write_at_all(f, 5, &one, first, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("close", SHMEM_File_close(&f));
}

/* What is written is known to the PE that wrote it; that it is to be cut off, to all. */
static void step_shorter(void)
{
    static char mine[1000];
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, "publish", "new");
    memset(mine, 's', sizeof mine);
    if (job.me == 1)
        told("alone", SHMEM_File_write_at(f, 0, mine, 1000, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("set_size", SHMEM_File_set_size(f, 500));
    told("close", SHMEM_File_close(&f));
}

/* The same, but longer. */
static void step_longer(void)
{
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, "publish", "new");
    char one = 'l';
    if (job.me == 1)
        told("alone", SHMEM_File_write_at(f, 9, &one, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("set_size", SHMEM_File_set_size(f, 20));
    told("close", SHMEM_File_close(&f));
}

/* The last rank errs, and all hear of it; the file stays as good as it was. */
static void step_one_errs(void)
{
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, NULL, NULL);
    SHMEM_Datatype raw;
    int errs = job.me == job.all - 1;
    char byte = 'd';
    SHMEM_Type_contiguous(1, SHMEM_CHAR, &raw);
    SHMEM_Datatype type = errs ? raw : SHMEM_CHAR;
    told("not committed", SHMEM_File_write_at_all(f, job.me, &byte, 1, type, SHMEM_STATUS_IGNORE));
    told("count",
         SHMEM_File_write_at_all(f, job.me, &byte, errs ? -1 : 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("offset",
         SHMEM_File_read_at_all(f, errs ? -1 : 0, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("null type", SHMEM_File_set_view(f, 0, SHMEM_BYTE, errs ? SHMEM_DATATYPE_NULL : SHMEM_CHAR,
                                          "native", SHMEM_INFO_NULL));
    told("datarep", SHMEM_File_set_view(f, 0, SHMEM_BYTE, SHMEM_BYTE,
                                        errs ? "external32" : "native", SHMEM_INFO_NULL));
    told("etype", SHMEM_File_set_view(f, 0, errs ? SHMEM_INT : SHMEM_BYTE, SHMEM_INT, "native",
                                      SHMEM_INFO_NULL));
    told("size", SHMEM_File_set_size(f, errs ? 7 : 8));
    SHMEM_File other;
    char elsewhere[sizeof path + 8];
    snprintf(elsewhere, sizeof elsewhere, "%s.other", path);
    told("name", SHMEM_File_open(SHMEM_COMM_WORLD, errs ? elsewhere : path, SHMEM_MODE_RDONLY,
                                 SHMEM_INFO_NULL, &other));
    told("amode",
         SHMEM_File_open(SHMEM_COMM_WORLD, path, errs ? SHMEM_MODE_RDWR : SHMEM_MODE_RDONLY,
                         SHMEM_INFO_NULL, &other));
    told("good", SHMEM_File_write_at_all(f, job.me, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("close", SHMEM_File_close(&f));
    SHMEM_Type_free(&raw);
}

/* The file grows by another way in: what collective calls then read and keep is all of it. */
static void step_grows(void)
{
    static char there[1000], back[1000];
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, NULL, NULL), own;
    SHMEM_Status status;
    char one = 'g';
    memset(there, 'h', sizeof there);
    if (job.me == 0) {
        SHMEM_File_open(SHMEM_COMM_SELF, path, SHMEM_MODE_WRONLY, SHMEM_INFO_NULL, &own);
        told("alone", SHMEM_File_write_at(own, 0, there, 1000, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
        SHMEM_File_close(&own);
    }
    told("sync", SHMEM_File_sync(f));
    told("write",
         SHMEM_File_write_at_all(f, 500, &one, job.me == 0, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("read", SHMEM_File_read_at_all(f, 0, back, 1000, SHMEM_CHAR, &status));
    there[500] = 'g';
    CHECK(status.bytes == 1000 && !memcmp(back, there, 1000), "%ld bytes", (long)status.bytes);
    told("close", SHMEM_File_close(&f));
}

/* One run of each rank: side by side; then each half over the next one's; and read past the
 * end. */
static void check_said(SHMEM_File f, const char *some)
{
    const char *said = SHMEM_File_explain(f);
    CHECK(strstr(said, some), "%s", said);
}

static void step_runs(void)
{
    static char mine[BLOCK], back[2 * BLOCK];
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, NULL, NULL);
    SHMEM_Status status;
    SHMEM_Offset end = (SHMEM_Offset)job.all * BLOCK, at = (SHMEM_Offset)job.me * BLOCK;
    memset(mine, 'A' + job.me, BLOCK);
    int code = SHMEM_File_write_at_all(f, at, mine, BLOCK, SHMEM_CHAR, SHMEM_STATUS_IGNORE);
    if (told("write", code)) {
        SHMEM_File_close(&f);
        return;
    }
    check_said(f, " 1 meetings");
    told("read", SHMEM_File_read_at_all(f, at, back, BLOCK, SHMEM_CHAR, &status));
    CHECK(status.bytes == BLOCK && back[0] == 'A' + job.me && back[BLOCK - 1] == back[0],
          "%ld bytes", (long)status.bytes);
    check_said(f, " 1 meetings");
    told("read", SHMEM_File_read_at_all(f, end - BLOCK, back, sizeof back, SHMEM_CHAR, &status));
    CHECK(status.bytes == BLOCK && back[0] == 'A' + job.all - 1 && back[BLOCK - 1] == back[0] &&
              back[BLOCK] == 0,
          "%ld bytes", (long)status.bytes);
    check_said(f, " 2 meetings"); /* the file ends before what was asked for */
    told("over", SHMEM_File_write_at_all(f, at / 2, mine, BLOCK, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("read", SHMEM_File_read_at_all(f, 0, back, BLOCK / 2, SHMEM_CHAR, &status));
    CHECK(back[0] == 'A' && back[BLOCK / 2 - 1] == 'A', "%.2s", back);
    told("one", SHMEM_File_write_at_all(f, end, mine, job.me == 1, SHMEM_CHAR, &status));
    CHECK(status.bytes == (job.me == 1), "%ld bytes", (long)status.bytes);
    told("close", SHMEM_File_close(&f));
}

/* Areas of shared memory in this process. */
static int n_areas(void)
{
    char line[4096];
    int n = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        n += strstr(line, "memfd:") != NULL;
    fclose(maps);
    return n;
}

/* Files one after another, the third with other windows. */
static void step_again(void)
{
    const char *const segments[] = {"64K", "64K", "128K"};
    int before = 0;
    for (int i = 0; i < 3; i++) {
        SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, "segment", segments[i]);
        int open = n_areas();
        told("write", write_blocks(f, (char)('a' + i)));
        told("close", SHMEM_File_close(&f));
        CHECK(n_areas() == open, "%d areas when it was open, %d later", open, n_areas());
        CHECK(i != 1 || open == before, "%d areas of the first, %d of the second", before, open);
        before = n_areas();
    }
}

/* Ranks that share no memory (hint share=no), on one machine. */
static void step_seams(void)
{
    const char *const seams[] = {"windows", "messages", "auto"};
    const char *const said[] = {"windows;", "messages, asked for;",
                                "adding in another node's memory"};
    for (int i = 0; i < 3; i++) {
        SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, "seam", seams[i]);
        check_said(f, said[i]);
        told("write", write_blocks(f, (char)('a' + i)));
        told("close", SHMEM_File_close(&f));
    }
}

/* A block of checksums (64 KiB) that one PE writes in two calls, and another between. */
static void step_turns(void)
{
    static char half[32 << 10];
    SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, "publish", "new");
    const int writers[] = {0, 1, 0};
    const SHMEM_Offset offsets[] = {0, 1000, sizeof half};
    for (int turn = 0; turn < 3; turn++) {
        memset(half, '0' + turn, sizeof half);
        if (job.me == writers[turn])
            told("write", SHMEM_File_write_at(f, offsets[turn], half, turn == 1 ? 500 : sizeof half,
                                              SHMEM_CHAR, SHMEM_STATUS_IGNORE));
        told("wait", SHMEM_File_set_view(f, 0, SHMEM_BYTE, SHMEM_BYTE, "native", SHMEM_INFO_NULL));
    }
    told("close", SHMEM_File_close(&f));
}

/* What is refused before a file is there, or because of how it is open. */
static void step_refused(void)
{
    SHMEM_File f;
    SHMEM_Info info;
    char byte = 'e';
    const int amodes[] = {SHMEM_MODE_RDONLY, 0, SHMEM_MODE_RDONLY | SHMEM_MODE_CREATE,
                          SHMEM_MODE_RDWR | SHMEM_MODE_SEQUENTIAL};
    for (int i = 0; i < 4; i++)
        told("open", SHMEM_File_open(SHMEM_COMM_WORLD, path, amodes[i], SHMEM_INFO_NULL, &f));
    told("folder",
         SHMEM_File_open(SHMEM_COMM_WORLD, "/tmp", SHMEM_MODE_RDONLY, SHMEM_INFO_NULL, &f));
    told("group", SHMEM_File_open(SHMEM_COMM_NULL, path, SHMEM_MODE_RDONLY, SHMEM_INFO_NULL, &f));
    SHMEM_Info_create(&info);
    SHMEM_Info_set(info, "romio_cb_write", "enable");
    SHMEM_Info_set(info, "striping_unit", "3");
    SHMEM_Info_set(info, "writers", "none");
    told("hint",
         SHMEM_File_open(SHMEM_COMM_WORLD, path, SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, info, &f));
    SHMEM_Info_set(info, "writers", "1");
    SHMEM_File_open(SHMEM_COMM_WORLD, path, SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, info, &f);
    told("read", SHMEM_File_read_at_all(f, 0, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("get_view", SHMEM_File_get_view(SHMEM_FILE_NULL, NULL, NULL, NULL, NULL));
    told("close", SHMEM_File_close(&f));
    told("twice", SHMEM_File_close(&f));
    told("free", SHMEM_Info_free(&info));
    told("free", SHMEM_Info_free(&info));
    told("exists", SHMEM_File_open(SHMEM_COMM_WORLD, path,
                                   SHMEM_MODE_CREATE | SHMEM_MODE_EXCL | SHMEM_MODE_RDWR,
                                   SHMEM_INFO_NULL, &f));
    SHMEM_File_open(SHMEM_COMM_WORLD, path, SHMEM_MODE_RDONLY | SHMEM_MODE_DELETE_ON_CLOSE,
                    SHMEM_INFO_NULL, &f);
    told("write", SHMEM_File_write_at_all(f, 0, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("close", SHMEM_File_close(&f));
    CHECK(access(path, F_OK) != 0, "it should be deleted");
}

/* Checksums go with their file, whether it was published before, would be now, or goes at once. */
static void step_deleted(void)
{
    const int ways[] = {SHMEM_MODE_CREATE | SHMEM_MODE_RDWR | SHMEM_MODE_DELETE_ON_CLOSE,
                        SHMEM_MODE_RDONLY | SHMEM_MODE_DELETE_ON_CLOSE};
    char sums[sizeof path + 8];
    snprintf(sums, sizeof sums, "%s.sums", path);
    for (int way = 0; way < 4; way++) {
        SHMEM_File f;
        if (way) {
            f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR, "publish", "yes");
            told("write", write_blocks(f, 'd'));
            told("close", SHMEM_File_close(&f));
            CHECK(job.me != 0 || access(sums, F_OK) == 0, "it should have checksums");
        }
        if (way < 3) {
            f = opened(ways[way % 2], "publish", "yes");
            if (way != 1)
                told("write", write_blocks(f, 'e'));
            told("close", SHMEM_File_close(&f));
        } else if (job.me == 0)
            told("delete", SHMEM_File_delete(path, SHMEM_INFO_NULL));
        CHECK(job.me != 0 || (access(path, F_OK) && access(sums, F_OK)), "way %d left it", way);
    }
}

/* Another job's, by the name of a file of ours that is open, and is deleted when it is closed. */
static void make_other(int publishes)
{
    SHMEM_Info info;
    SHMEM_File f;
    char byte = 'o';
    SHMEM_Info_create(&info);
    SHMEM_Info_set(info, "publish", publishes ? "yes" : "no");
    unlink(path);
    told("other",
         SHMEM_File_open(SHMEM_COMM_SELF, path, SHMEM_MODE_CREATE | SHMEM_MODE_WRONLY, info, &f));
    told("other", SHMEM_File_write_at(f, 0, &byte, 1, SHMEM_CHAR, SHMEM_STATUS_IGNORE));
    told("other", SHMEM_File_close(&f));
    SHMEM_Info_free(&info);
}

static void step_kept(void)
{
    const struct {
        int amode, other_publishes, was_there;
        const char *publish;
    } ways[] = {{SHMEM_MODE_EXCL, 0, 0, "yes"},
                {0, 1, 0, "new"},
                {0, 0, 1, "yes"},
                {0, 1, 1, "new"},
                {0, 0, 0, "no"}};
    char sums[sizeof path + 8];
    snprintf(sums, sizeof sums, "%s.sums", path);
    for (int way = 0; way < 5; way++) {
        if (job.me == 0 && ways[way].was_there)
            make_other(1);
        SHMEM_File f = opened(SHMEM_MODE_CREATE | SHMEM_MODE_RDWR | SHMEM_MODE_DELETE_ON_CLOSE |
                                  ways[way].amode,
                              "publish", ways[way].publish);
        told("write", write_blocks(f, 'e'));
        if (job.me == 0)
            make_other(ways[way].other_publishes);
        told("close", SHMEM_File_close(&f));
        int has_sums = job.me == 0 && access(sums, F_OK) == 0;
        CHECK(job.me != 0 || access(path, F_OK) == 0, "way %d deleted another's", way);
        CHECK(job.me != 0 || has_sums == ways[way].other_publishes, "way %d: sums %d", way,
              has_sums);
        if (job.me == 0)
            SHMEM_File_delete(path, SHMEM_INFO_NULL);
    }
}

int main(int argc, char **argv)
{
    static const struct step steps[] = {
        {"write", step_write},       {"publish", step_publish}, {"update", step_update},
        {"one-sync", step_one_sync}, {"shorter", step_shorter}, {"longer", step_longer},
        {"grows", step_grows},       {"turns", step_turns},     {"runs", step_runs},
        {"one-errs", step_one_errs}, {"refused", step_refused}, {"again", step_again},
        {"seams", step_seams},       {"deleted", step_deleted}, {"kept", step_kept}};
    steps_run(argc, argv, steps, sizeof steps / sizeof *steps);
}
