/* A store in place: the file under its name is what is written, and nothing else is there. */
#include "base/newer.h"
#include "claim.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64], path[96];
static int asked; /* about rights, by name */
static int synced;

/* In libc's place. */
int faccessat(int dir, const char *name, int mode, int flags)
{
    asked++;
    return (int)syscall(SYS_faccessat2, dir, name, mode, flags);
}

int fsync(int fd)
{
    synced++;
    return (int)syscall(SYS_fsync, fd);
}

/* 0 and an open store, or what prepare said. */
static int open_it(unsigned flags, struct io_store **store, struct brg_error *err)
{
    struct io_hints hints;
    struct store_token token;
    hints_default(&hints);
    int rc = store_prepare(path, flags | STORE_IN_PLACE, &hints, NULL, &token, err);
    if (!rc)
        CHECK(store_open(&token, &hints, 0, NULL, store, err) == 0, "%s", err->text);
    return rc;
}

static int entries(void)
{
    int n = 0;
    DIR *dir = opendir(folder);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n - 2;
}

static void holds(const char *wanted, size_t n)
{
    char got[64] = "";
    int fd = open(path, O_RDONLY);
    ssize_t there = pread(fd, got, sizeof got, 0);
    close(fd);
    CHECK(there == (ssize_t)n && memcmp(got, wanted, n) == 0, "%zd bytes: %s", there, got);
}

static void is_written_and_read_under_its_name(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    char buf[8];
    size_t got;
    uint64_t size;
    CHECK(open_it(BRG_WRITE, &store, &err) == -ENOENT, "%d %s", err.code, err.text);
    if (open_it(BRG_READ | BRG_WRITE | BRG_CREATE, &store, &err)) {
        CHECK(0, "%s", err.text);
        return;
    }
    CHECK(store_write(store, "abcdef", 6, 2, &err) == 0, "%s", err.text);
    holds("\0\0abcdef", 8); /* nobody said so: it is simply there */
    CHECK(store_read(store, buf, 8, 4, &got, &err) == 0 && got == 4, "%s", err.text);
    CHECK(memcmp(buf, "cdef", 4) == 0, "%.4s", buf);
    CHECK(store_resize(store, 5, &err) == 0, "%s", err.text);
    CHECK(store_size(store, &size, &err) == 0 && size == 5, "%s", err.text);
    CHECK(store_flush(store, &err) == 0, "%s", err.text);
    CHECK(store_write(store, "Z", 1, 0, &err) == 0, "%s", err.text);
    CHECK(entries() == 1, "%d", entries());
    store_discard(store);
    store_close(store);
    holds("Z\0abc", 5);
}

static void keeps_what_was_there(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    char sums[128];
    CHECK(open_it(BRG_WRITE | BRG_CREATE | BRG_EXCLUSIVE, &store, &err) == -EEXIST, "%s", err.text);
    snprintf(sums, sizeof sums, "%s.sums", path);
    close(open(sums, O_CREAT | O_WRONLY, 0600)); /* somebody else's: stays */
    chmod(path, 0200);
    if (open_it(BRG_WRITE | BRG_CREATE, &store, &err)) {
        CHECK(0, "%s", err.text);
        return;
    }
    CHECK(store_write(store, "Y", 1, 1, &err) == 0, "%s", err.text);
    store_close(store);
    chmod(path, 0600);
    holds("ZYabc", 5);
    CHECK(entries() == 2, "%d", entries());
}

/* What lets go of a file in between does not take another one for it. */
static void stays_the_same_file_whatever_its_name_is(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    char other[128], buf[8];
    size_t got;
    snprintf(other, sizeof other, "%s.other", path);
    for (int shown = 0; shown < 2; shown++) {
        if (open_it(BRG_READ | BRG_WRITE | BRG_CREATE, &store, &err)) {
            CHECK(0, "%s", err.text);
            return;
        }
        CHECK(store_write(store, "first", 5, 0, &err) == 0, "%s", err.text);
        CHECK((shown ? store_show(store, &err) : store_flush(store, &err)) == 0, "%s", err.text);
        rename(path, other);
        close(open(path, O_CREAT | O_WRONLY, 0600));
        CHECK(store_write(store, "F", 1, 0, &err) == 0, "%s", err.text);
        CHECK(store_read(store, buf, 5, 0, &got, &err) == 0 && got == 5, "%s", err.text);
        CHECK(memcmp(buf, "First", 5) == 0, "%.5s", buf);
        store_close(store);
        holds("", 0);
        rename(other, path);
        holds("First", 5);
    }
}

static void what_was_let_go_of_is_synced(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    if (open_it(BRG_WRITE, &store, &err)) {
        CHECK(0, "%s", err.text);
        return;
    }
    CHECK(store_write(store, "F", 1, 0, &err) == 0, "%s", err.text);
    CHECK(store_show(store, &err) == 0, "%s", err.text);
    synced = 0;
    CHECK(store_flush(store, &err) == 0 && synced == 1, "%d %s", synced, err.text);
    store_close(store);
}

/* To a shared file system each question is a request. */
static void what_could_be_opened_is_not_asked_about(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    unsigned flags[] = {BRG_READ, BRG_READ | BRG_WRITE, BRG_READ | BRG_WRITE | BRG_CREATE};
    asked = 0;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
        if (open_it(flags[i], &store, &err) == 0)
            store_close(store);
    CHECK(asked == 0, "%d questions; %s", asked, err.text);
}

static void what_may_not_be_written_is_refused(void)
{
    struct brg_error err = {0};
    struct io_store *store;
    uid_t me = geteuid();
    chmod(path, 0444);
    chmod(folder, 0755);
    CHECK(me || seteuid(65534) == 0, "root stays root");
    CHECK(open_it(BRG_WRITE, &store, &err) == -EACCES, "%s", err.text);
    CHECK(open_it(BRG_READ | BRG_WRITE, &store, &err) == -EACCES, "%s", err.text);
    if (open_it(BRG_READ, &store, &err) == 0)
        store_close(store);
    CHECK(err.code == -EACCES, "%s", err.text);
    CHECK(seteuid(me) == 0, "root does not come back");
}

int main(void)
{
    snprintf(folder, sizeof folder, "/tmp/brigade-in-place-XXXXXX");
    if (!mkdtemp(folder))
        return 1;
    snprintf(path, sizeof path, "%s/file", folder);
    is_written_and_read_under_its_name();
    keeps_what_was_there();
    what_could_be_opened_is_not_asked_about();
    stays_the_same_file_whatever_its_name_is();
    what_was_let_go_of_is_synced();
    what_may_not_be_written_is_refused();
    unlink(path);
    strcat(path, ".sums");
    unlink(path);
    rmdir(folder);
    return failures != 0;
}
