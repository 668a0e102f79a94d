/* The index of a file's arrays: read by rank 0 for all when the file is opened, written by rank 0
 * when all have come to commit. And the calls that look arrays up. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/array_index.h"
#include "io/file_array.h"

/* ---- opening ---- */

static int this_order(void)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 1 : 2;
}

void arrays_look(brg_file *f, struct found_index *found)
{
    char buf[ARRAY_HEADER_BYTES];
    size_t got = 0;
    if (f->token.size < ARRAY_HEADER_BYTES || f->token.flags & BRG_CREATE)
        return;
    if (store_read(f->store, buf, sizeof buf, 0, &got, &f->failure))
        return;
    found->kind = array_header_unpack(buf, got, f->token.size, &found->header, &found->damage);
    if (found->kind == 1 && (int)found->header.order != this_order())
        found->kind = brg_error_set(&found->damage, -EOPNOTSUPP,
                                    "its arrays were written by a machine of the other byte order");
}

static int read_index(brg_file *f, const struct array_header *header, char **out)
{
    char *buf = malloc(header->bytes + 1);
    size_t got = 0;
    if (!buf)
        brg_error_set(&f->failure, -ENOMEM, "no memory for the index of %.200s", f->token.path);
    else if (f->world->rank == 0 &&
             !store_read(f->store, buf, header->bytes, header->offset, &got, &f->failure) &&
             got < header->bytes)
        memset(buf + got, 0, header->bytes - got); /* its checksum will tell */
    int rc = world_failure(f->world, &f->failure);
    if (!rc && header->bytes)
        rc = world_share(f->world, buf, header->bytes, 0, &f->failure);
    if (rc)
        free(buf);
    else
        *out = buf;
    return rc;
}

/* Damage is the same on every rank: all look at the same bytes. */
static int take_index(brg_file *f, const struct array_header *header)
{
    struct file_arrays *a = f->arrays;
    struct brg_error err;
    char *buf = NULL;
    int rc = read_index(f, header, &buf);
    if (rc)
        return rc;
    int damaged = array_index_unpack(&a->table, buf, header, &err);
    free(buf);
    if (damaged == -ENOMEM)
        f->failure = err;
    else if (damaged)
        a->damage = err;
    for (size_t i = 0; i < a->table.n && !damaged; i++)
        if (a->table.arrays[i].bytes &&
            a->table.arrays[i].is.offset + a->table.arrays[i].bytes > f->token.size)
            damaged = brg_error_set(&a->damage, -EBADMSG, "array %.200s ends behind the file's end",
                                    a->table.arrays[i].is.name);
    if (damaged) {
        array_table_destroy(&a->table);
        array_table_init(&a->table, f->token.size, f->token.stripe_bytes, f->token.block_bytes);
    }
    a->agreed = a->loaded = a->table.n;
    return world_failure(f->world, &f->failure);
}

int arrays_load(brg_file *f, const struct found_index *found)
{
    if (found->kind == 0)
        return 0;
    f->arrays = calloc(1, sizeof *f->arrays);
    if (!f->arrays)
        brg_error_set(&f->failure, -ENOMEM, "no memory for arrays");
    int rc = world_failure(f->world, &f->failure);
    if (rc)
        return rc;
    array_table_init(&f->arrays->table, f->token.size, f->token.stripe_bytes, f->token.block_bytes);
    f->arrays->damage = found->damage;
    rc = found->kind == 1 ? take_index(f, &found->header) : 0;
    if (f->arrays->damage.code) {
        struct brg_error *damage = &f->arrays->damage, was = *damage;
        brg_error_set(damage, was.code, "%.200s: %.700s", f->token.path, was.text);
        snprintf(damage->path, sizeof damage->path, "%s", f->token.path);
    }
    return rc;
}

/* ---- commit ---- */

int arrays_pack_index(brg_file *f, char **buf, brg_piece pieces[2], struct brg_error *err)
{
    const struct array_table *t = &f->arrays->table;
    uint64_t bytes = array_index_bytes(t);
    uint64_t at = (t->end + ARRAY_ALIGNMENT - 1) / ARRAY_ALIGNMENT * ARRAY_ALIGNMENT;
    if (bytes > ARRAY_INDEX_MOST)
        return brg_error_set(err, -E2BIG,
                             "%.200s: the index of its arrays would have %llu bytes, more than %u",
                             f->token.path, (unsigned long long)bytes, ARRAY_INDEX_MOST);
    *buf = malloc(ARRAY_HEADER_BYTES + bytes);
    if (!*buf)
        return brg_error_set(err, -ENOMEM, "no memory for the index of %.200s", f->token.path);
    array_index_pack(t, *buf + ARRAY_HEADER_BYTES);
    array_header_pack(*buf, at, *buf + ARRAY_HEADER_BYTES, bytes);
    pieces[0] = (brg_piece){0, ARRAY_HEADER_BYTES};
    pieces[1] = (brg_piece){at, bytes};
    return 0;
}

/* How rank 0 writes header and index. */
enum index_way {
    WITH_KEPT, /* in the call that writes what is kept, which the others take part in anyway */
    ALONE,     /* by itself, before it comes to commit: all see what it writes, nobody else does */
    WHEN_MET   /* all have agreed on the arrays, and to commit: the file is changed where it lies */
};

static enum index_way index_way(const brg_file *f)
{
    if (!arrays_may_agree_later(f))
        return WHEN_MET;
    return file_sees_all(f) ? ALONE : WITH_KEPT;
}

/* Whatever fails is told when the ranks meet. */
static void write_alone(brg_file *f)
{
    struct brg_error *failure = &f->early.failure;
    brg_piece pieces[2];
    char *buf = NULL;
    if (failure->code)
        return;
    int rc = arrays_pack_index(f, &buf, pieces, failure);
    if (!rc)
        rc = store_write(f->store, buf, ARRAY_HEADER_BYTES, 0, failure);
    if (!rc)
        rc = store_write(f->store, buf + ARRAY_HEADER_BYTES, pieces[1].bytes, pieces[1].offset,
                         failure);
    if (!rc)
        rc = store_end_call(f->store, 0, failure);
    if (!rc)
        f->index = (struct file_index){.at = pieces[1].offset, .bytes = pieces[1].bytes};
    free(buf);
}

static int write_in_call(brg_file *f, struct brg_error *err)
{
    struct io_request request;
    struct brg_error why = {.code = 0};
    brg_piece pieces[2];
    char *buf = NULL;
    int rc = 0;
    request_none(&request);
    if (f->world->rank == 0)
        rc = arrays_pack_index(f, &buf, pieces, &why);
    if (f->world->rank == 0 && !rc)
        rc = request_of_pieces(&request, pieces, 2, buf, &why);
    rc = file_bring(f, FILE_WRITE, &request, rc, &why);
    free(buf);
    if (rc && err)
        *err = why;
    return rc;
}

int arrays_commit(brg_file *f, struct brg_error *err)
{
    struct io_request nothing;
    enum index_way way = WHEN_MET;
    int rc = file_refuse(f, FILE_COMMIT, err);
    if (!rc) {
        way = index_way(f);
        if (way == WITH_KEPT && f->arrays && f->arrays->changed)
            rc = kept_bring(f, 1, err);
    }
    if (!rc)
        rc = arrays_settle(f, err);
    if (rc)
        return rc;
    f->index.left = f->world->rank == 0 && f->arrays && f->arrays->changed;
    if (f->index.left && way == ALONE)
        write_alone(f);
    request_none(&nothing);
    rc = file_meet(f, FILE_COMMIT, &nothing, err);
    return rc || !f->index.left ? rc : write_in_call(f, err);
}

/* ---- looking up ---- */

static int find(brg_file *f, const char *name, size_t *i, struct brg_error *err)
{
    if (!f)
        return file_none(err);
    if (f->arrays && f->arrays->damage.code)
        return arrays_begin(f, err);
    int64_t found = f->arrays ? array_table_find(&f->arrays->table, name) : -1;
    if (found < 0)
        return brg_error_set(err, -ENOENT,
                             f->arrays ? "there is no array %.200s in %.200s"
                                       : "there is no array %.200s: %.200s is no file of arrays",
                             name, f->token.path);
    *i = (size_t)found;
    return 0;
}

int brg_file_find_array(brg_file *f, const char *name, brg_array *array, struct brg_error *err)
{
    size_t i = 0;
    int rc = find(f, name, &i, err);
    if (!rc)
        *array = f->arrays->table.arrays[i].is;
    return rc;
}

size_t brg_file_array_count(brg_file *f)
{
    return f && f->arrays ? f->arrays->table.n : 0;
}

int brg_file_array_at(brg_file *f, size_t i, brg_array *array)
{
    if (i >= brg_file_array_count(f))
        return f ? -ENOENT : -EBADF;
    *array = f->arrays->table.arrays[i].is;
    return 0;
}

int brg_file_read_array(brg_file *f, const char *name, const uint64_t *start, const uint64_t *count,
                        const int64_t *strides, void *buf, struct brg_error *err)
{
    struct io_request request;
    size_t i = 0;
    int rc = file_refuse(f, FILE_READ, err);
    if (rc)
        return rc;
    request_none(&request);
    rc = find(f, name, &i, err);
    if (!rc)
        rc = array_request(&request, &f->arrays->table.arrays[i], start, count, strides, buf, err);
    return file_bring(f, FILE_READ, &request, rc, err);
}
