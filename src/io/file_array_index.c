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

/* Into buf, on rank 0. */
static void read_index(brg_file *f, const struct array_header *header, char *buf)
{
    size_t got = 0;
    if (!store_read(f->store, buf, header->bytes, header->offset, &got, &f->failure) &&
        got < header->bytes)
        memset(buf + got, 0, header->bytes - got); /* its checksum will tell */
}

/* All ranks get rank 0's index, and hear of failures: one agreement, if it is not long. */
static int share_index(brg_file *f, const struct array_header *header, char *buf)
{
    int64_t least = world_failure_key(f->world, &f->failure);
    struct brg_error err;
    int rc = header->bytes ? world_share_and_least(f->world, buf, header->bytes, 0, &least, 1, &err)
                           : world_minimum(f->world, &least, 1, &err);
    if (rc)
        f->failure = err;
    return rc ? rc : world_failure_of(f->world, least, &f->failure);
}

static void name_damage(brg_file *f)
{
    struct brg_error *damage = &f->arrays->damage, was = *damage;
    if (!was.code)
        return;
    brg_error_set(damage, was.code, "%.200s: %.700s", f->token.path, was.text);
    snprintf(damage->path, sizeof damage->path, "%s", f->token.path);
}

/* Damage is the same on every rank, as all look at the same bytes. A rank without memory for them
 * says so when it is asked for an array, as others say what is damaged. */
static void take_index(brg_file *f, const struct array_header *header, const char *buf)
{
    struct file_arrays *a = f->arrays;
    struct array_table *t = &a->table;
    int damaged = array_index_unpack(t, buf, header, &a->damage);
    for (size_t i = 0; i < t->n && !damaged; i++)
        if (t->arrays[i].bytes && t->arrays[i].is.offset + t->arrays[i].bytes > f->token.size)
            damaged = brg_error_set(&a->damage, -EBADMSG, "array %.200s ends behind the file's end",
                                    t->arrays[i].is.name);
    if (damaged) {
        array_table_destroy(t);
        arrays_empty(f, f->token.size);
    }
    a->agreed = a->loaded = t->n;
}

int arrays_load(brg_file *f, const struct found_index *found)
{
    const struct array_header none = {.bytes = 0},
                              *header = found->kind == 1 ? &found->header : &none;
    char *buf;
    if (found->kind == 0)
        return 0;
    f->arrays = calloc(1, sizeof *f->arrays);
    buf = malloc(header->bytes + 1);
    if (!f->arrays || !buf)
        brg_error_set(&f->failure, -ENOMEM, "no memory for the arrays of %.200s", f->token.path);
    else if (f->world->rank == 0 && header->bytes)
        read_index(f, header, buf);
    int rc = share_index(f, header, buf);
    if (!rc) {
        arrays_empty(f, f->token.size);
        f->arrays->damage = found->damage;
        if (found->kind == 1)
            take_index(f, header, buf);
        name_damage(f);
    }
    free(buf);
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
    struct brg_error unwanted;
    size_t i = 0;
    int rc = file_refuse(f, FILE_READ, err);
    if (rc)
        return rc;
    err = err ? err : &unwanted; /* the words must reach the other ranks */
    request_none(&request);
    rc = find(f, name, &i, err);
    if (!rc)
        rc = array_request(&request, &f->arrays->table.arrays[i], start, count, strides, buf, err);
    return file_bring(f, FILE_READ, &request, rc, err);
}
