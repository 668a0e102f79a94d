/* brigade-file verify and info: what a file is, and whether it is as it was written. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/check.h"
#include "store/store_inside.h"
#include "store/store_io.h"
#include "io/tool.h"

static void end(struct json *j)
{
    json_add(j, "}");
    json_print(j, STDOUT_FILENO);
}

static void look_or_stop(void *context, uint64_t done, uint64_t total)
{
    if (tool_stopped())
        _exit(130); /* nothing was changed */
    tool_progress(context, done, total);
}

int tool_verify(char **words)
{
    static struct check_report report; /* too large for a stack */
    struct brg_error err;
    struct json j = {0};
    if (check_file(words[0], look_or_stop, NULL, &report, &err))
        return tool_error(&err);
    json_add(&j, "{");
    tool_add_number(&j, "bytes", report.size);
    tool_add_number(&j, "block_bytes", report.block_bytes);
    tool_add_number(&j, "blocks", report.n_blocks);
    tool_add_number(&j, "parts", (uint64_t)report.parts);
    tool_add_number(&j, "damaged", report.n_bad);
    json_add(&j, ", \"listed\": [");
    for (uint64_t i = 0; i < report.n_bad && i < CHECK_LISTED; i++) {
        const struct check_bad *bad = &report.bad[i];
        json_add(&j, "%s{", i ? ", " : "");
        tool_add_string(&j, "path", bad->path);
        tool_add_number(&j, "offset", bad->offset);
        tool_add_number(&j, "bytes", bad->bytes);
        tool_add_string(&j, "what", bad->what);
        json_add(&j, "}");
    }
    json_add(&j, "]");
    end(&j);
    return 0;
}

static int info_parts(const char *path, struct json *j, struct brg_error *err)
{
    struct parts_index *x = malloc(sizeof *x);
    struct parts_part part;
    int rc = x ? parts_index_open(x, path, err) : brg_error_set(err, -ENOMEM, "no memory");
    if (rc) {
        free(x);
        return rc;
    }
    tool_add_number(j, "bytes", x->head.size);
    tool_add_string(j, "layout", "parts");
    tool_add_number(j, "block_bytes", x->head.block_bytes);
    tool_add_number(j, "extents", x->head.n_extents);
    tool_add_number(j, "index_bytes", x->head.total_bytes);
    tool_add_string(j, "folder", x->head.folder);
    json_add(j, ", \"parts\": [");
    for (uint32_t i = 0; !rc && i < x->head.n_parts; i++) {
        rc = parts_index_part(x, i, &part);
        json_add(j, "%s{\"name\": \"%06llu\", \"bytes\": %llu}", i ? ", " : "",
                 (unsigned long long)part.number, (unsigned long long)part.bytes);
    }
    json_add(j, "]");
    if (rc)
        store_failed(err, rc, path, -1, "read the index");
    parts_index_close(x);
    free(x);
    return rc;
}

static int info_shared(const char *path, const struct stat *st, struct json *j)
{
    char name[STORE_NAME_BYTES];
    struct sums_file file;
    struct brg_error err;
    store_name(name, path, ".sums");
    int rc = sums_file_open(&file, name, &err);
    tool_add_number(j, "bytes", (uint64_t)st->st_size);
    tool_add_string(j, "layout", "shared");
    if (rc) {
        tool_add_string(j, "checksums", rc == -EBADMSG ? "damaged" : "none");
        return 0;
    }
    int own = store_own_section(&file, (uint64_t)st->st_ino, (uint64_t)st->st_size);
    tool_add_string(j, "checksums", own >= 0 ? "its own" : "of a copy, or of another file");
    tool_add_number(j, "block_bytes", file.section[own < 0 ? 0 : own].block_bytes);
    sums_file_close(&file);
    return 0;
}

int tool_info(char **words)
{
    char real[PATH_MAX];
    struct json j = {0};
    struct brg_error err;
    struct stat st;
    if (!realpath(words[0], real) || stat(real, &st)) {
        store_failed(&err, -errno, words[0], -1, "open");
        return tool_error(&err);
    }
    if (strlen(real) >= STORE_PATH - 64) {
        store_failed(&err, -ENAMETOOLONG, words[0], -1, "open");
        return tool_error(&err);
    }
    json_add(&j, "{");
    tool_add_string(&j, "file", real);
    int rc = info_parts(real, &j, &err);
    if (rc == -EMEDIUMTYPE)
        rc = info_shared(real, &st, &j);
    if (rc == 0)
        end(&j);
    free(j.text);
    return rc ? tool_error(&err) : 0;
}
