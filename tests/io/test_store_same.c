/* All ranks read the file that rank 0 opened, whatever has its name when they first read; or one
 * that cannot reach it is told so. */
#include "claim.h"
#include "store/store_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NO_FILE 9999 /* no descriptor of this process: rank 0 is on another node */

static char folder[] = "/tmp/brigade-test-XXXXXX", path[64], beside[64];
static struct io_hints hints;

static void make(const char *name, const char *text, enum io_layout layout)
{
    struct store_token token;
    struct io_store *s;
    struct brg_error err;
    hints_default(&hints);
    hints.sync = hints.checksums = 0;
    hints.layout = layout;
    CHECK(store_prepare(name, BRG_WRITE | BRG_CREATE, &hints, NULL, &token, &err) == 0 &&
              store_open(&token, &hints, 0, NULL, &s, &err) == 0,
          "%s", err.text);
    store_begin_call(s);
    CHECK(store_write(s, text, strlen(text), 0, &err) == 0 && store_end_call(s, 0, &err) == 0 &&
              store_flush(s, &err) == 0 && store_publish(s, strlen(text), &err) == 0,
          "%s", err.text);
    store_close(s);
}

/* What rank 1 reads, or what it is told, where `becomes` of the name stands between its opening by
 * rank 0 and that. */
static int read_after(void (*becomes)(void), int is_near, char text[4], struct brg_error *err)
{
    struct store_token token;
    struct io_store *first, *second;
    CHECK(store_prepare(path, BRG_READ, &hints, NULL, &token, err) == 0, "%s", err->text);
    CHECK(store_open(&token, &hints, 0, NULL, &first, err) == 0, "%s", err->text);
    if (!is_near)
        token.file = NO_FILE;
    CHECK(store_open(&token, &hints, 1, NULL, &second, err) == 0, "%s", err->text);
    becomes();
    memset(text, 0, 4);
    int rc = store_read_all(second, text, 3, 0, err);
    store_close(second);
    store_close(first);
    return rc;
}

static void stays(void)
{
}

static void is_touched(void)
{
    CHECK(chmod(path, 0640) == 0 && truncate(path, 4) == 0, "no file");
}

static void is_removed(void)
{
    unlink(path);
}

static void is_replaced(void)
{
    make(beside, "new", IO_SHARED);
    rename(beside, path);
}

static void is_replaced_by_parts(void)
{
    make(path, "new", IO_PARTS);
}

static void the_file_is_the_one_that_rank_0_opened(void)
{
    static void (*const all[])(void) = {stays, is_touched, is_removed, is_replaced,
                                        is_replaced_by_parts};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[4];
        struct brg_error err;
        make(path, "old", IO_SHARED);
        CHECK(read_after(all[i], 1, text, &err) == 0, "%zu: %s", i, err.text);
        CHECK(strcmp(text, "old") == 0, "%zu: it read %s", i, text);
    }
}

static void one_that_cannot_be_reached_is_told_from_another(void)
{
    static const struct {
        void (*becomes)(void);
        int code;
    } all[] = {{stays, 0},
               {is_touched, 0},
               {is_removed, -ESTALE},
               {is_replaced, -ESTALE},
               {is_replaced_by_parts, -ESTALE}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char text[4];
        struct brg_error err;
        make(path, "old", IO_SHARED);
        int rc = read_after(all[i].becomes, 0, text, &err);
        CHECK(rc == all[i].code, "%zu: %d, %s", i, rc, text);
        CHECK(!rc || (strstr(err.text, "replaced or removed") && strcmp(err.path, path) == 0),
              "%zu: %s", i, err.text);
    }
}

static void an_index_of_other_parts_is_not_read(void)
{
    char text[4];
    struct brg_error err;
    make(path, "old", IO_PARTS);
    CHECK(read_after(stays, 0, text, &err) == 0 && strcmp(text, "old") == 0, "%s", text);
    CHECK(read_after(is_replaced_by_parts, 0, text, &err) == -ESTALE, "it read %s", text);
}

int main(void)
{
    char command[80];
    CHECK(mkdtemp(folder) != NULL, "no folder");
    snprintf(path, sizeof path, "%s/f", folder);
    snprintf(beside, sizeof beside, "%s/g", folder);
    the_file_is_the_one_that_rank_0_opened();
    one_that_cannot_be_reached_is_told_from_another();
    an_index_of_other_parts_is_not_read();
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) != 0 || failures != 0;
}
