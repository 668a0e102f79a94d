/* Random programs of calls, on random groups, by random views and datatypes, against the same
 * written out byte by byte by one process.
 *
 *   random_calls KIND LIBRARY FOLDER SEED CASES
 *
 * A case is a file on a group, opened some way, and a few calls. Of what several PEs write in one
 * call each byte's value follows from its place, so any PE may be the one that counts. */
#include <fcntl.h>
#include <unistd.h>

#include "base/io.h"
#include "claim.h"
#include "job.h"
#include "type/random_type.h"

#define FILE_BYTES 40000 /* and 100 that set_size may add */
#define MEMORY_BYTES 30000
#define MIDDLE (MEMORY_BYTES / 2)
#define CALLS 5

static struct job job;
static char expected[FILE_BYTES + 100];
static int64_t size; /* of the file, as it should be */

static char byte_of(uint64_t key, int64_t offset)
{
    return (char)((key + (uint64_t)offset * 0x9e3779b97f4a7c15u) >> 57);
}

/* ---- types ---- */

static SHMEM_Datatype basic(int64_t bytes)
{
    return bytes == 1   ? SHMEM_CHAR
           : bytes == 2 ? SHMEM_SHORT
           : bytes == 4 ? SHMEM_FLOAT
                        : SHMEM_LONG;
}

static int make_array(const struct recipe *r, SHMEM_Datatype old, SHMEM_Datatype *out)
{
    int sizes[MOST], subsizes[MOST], starts[MOST], how[MOST];
    int order = r->order == TYPE_ORDER_C ? SHMEM_ORDER_C : SHMEM_ORDER_FORTRAN;
    for (int d = 0; d < r->ndims; d++) {
        sizes[d] = (int)r->sizes[d];
        subsizes[d] = (int)r->subsizes[d];
        starts[d] = (int)r->starts[d];
        how[d] = r->how[d] == TYPE_BLOCK    ? SHMEM_DISTRIBUTE_BLOCK
                 : r->how[d] == TYPE_CYCLIC ? SHMEM_DISTRIBUTE_CYCLIC
                                            : SHMEM_DISTRIBUTE_NONE;
    }
    return r->maker == SUBARRAY
               ? SHMEM_Type_create_subarray(r->ndims, sizes, subsizes, starts, order, old, out)
               : SHMEM_Type_create_darray(r->size, r->rank, r->ndims, sizes, how, subsizes,
                                          r->psizes, order, old, out);
}

static SHMEM_Datatype make(const struct recipe *r)
{
    SHMEM_Datatype olds[MOST], out = SHMEM_DATATYPE_NULL;
    int lengths[MOST], steps[MOST], code = 0, count = (int)r->count, length = (int)r->length;
    SHMEM_Aint places[MOST];
    if (r->maker == BASIC)
        return basic(r->length);
    for (int i = 0; i < MOST; i++) {
        olds[i] = r->olds[i] ? make(r->olds[i]) : SHMEM_DATATYPE_NULL;
        lengths[i] = (int)r->lengths[i];
        steps[i] = (int)r->places[i];
        places[i] = r->places[i];
    }
    SHMEM_Datatype old = olds[0];
    switch (r->maker) {
    case CONTIGUOUS: code = SHMEM_Type_contiguous(count, old, &out); break;
    case VECTOR: code = SHMEM_Type_vector(count, length, (int)r->stride, old, &out); break;
    case HVECTOR: code = SHMEM_Type_create_hvector(count, length, r->stride, old, &out); break;
    case INDEXED: code = SHMEM_Type_indexed(count, lengths, steps, old, &out); break;
    case HINDEXED: code = SHMEM_Type_create_hindexed(count, lengths, places, old, &out); break;
    case INDEXED_BLOCK:
        code = SHMEM_Type_create_indexed_block(count, length, steps, old, &out);
        break;
    case HINDEXED_BLOCK:
        code = SHMEM_Type_create_hindexed_block(count, length, places, old, &out);
        break;
    case STRUCT: code = SHMEM_Type_create_struct(count, lengths, places, olds, &out); break;
    case RESIZED: code = SHMEM_Type_create_resized(old, r->length, r->stride, &out); break;
    default: code = make_array(r, old, &out); break;
    }
    CHECK(code == 0, "maker %d: %s", r->maker, SHMEM_Last_error()->text);
    for (int i = 0; i < MOST; i++)
        if (r->olds[i] && r->olds[i]->maker != BASIC)
            SHMEM_Type_free(&olds[i]);
    return out;
}

static SHMEM_Datatype ready(const struct recipe *r)
{
    SHMEM_Datatype type = make(r);
    SHMEM_Aint lb, extent, want = type_extent(r->type);
    SHMEM_Type_commit(&type);
    CHECK(SHMEM_Type_get_extent(type, &lb, &extent) == 0 && extent == want && lb == r->type->lb,
          "extent %ld, not %ld", (long)extent, (long)want);
    return type;
}

static void give_back(const struct recipe *r, SHMEM_Datatype type)
{
    if (r->maker != BASIC)
        SHMEM_Type_free(&type);
}

/* ---- what a PE asks ---- */

/* Byte i of the data lies at file_at[i] and memory_at[i]. */
struct ask {
    struct recipe *seen, *held;
    int64_t shift, offset, count, bytes;
    int64_t file_at[FILE_BYTES], memory_at[MEMORY_BYTES];
};

/* Bytes of copies of what is written out; -1: too many, or they leave [0, most) or meet. */
static int64_t write_out(const struct map *m, int64_t from, int64_t bytes, int64_t shift,
                         int64_t most, int64_t *at)
{
    static char met[FILE_BYTES];
    int64_t all = map_size(m), extent = map_extent(m), n = 0;
    memset(met, 0, sizeof met);
    for (int64_t copy = from / all, skip = from % all; n < bytes; copy++)
        for (int i = 0; i < m->n && n < bytes; i++)
            for (int64_t k = 0; k < m->elements[i].bytes && n < bytes; k++) {
                int64_t place = shift + copy * extent + m->elements[i].at + k;
                if (skip && skip--)
                    continue;
                if (place < 0 || place >= most || met[place]++ || n == MEMORY_BYTES)
                    return -1;
                at[n++] = place;
            }
    return n;
}

/* As good as random (splitmix64), from keys that lie a distance apart: what is drawn first from
 * those themselves goes one way 58 times of 60. */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* What a view's type may not. */
static int falls(const struct map *m)
{
    for (int i = 1; i < m->n; i++)
        if (m->elements[i].at < m->elements[i - 1].at + m->elements[i - 1].bytes)
            return 1;
    return 0;
}

/* What rank `rank` asks, from the key alone: nothing, where what was drawn does not fit. */
static void draw(struct ask *a, uint64_t key, int rank)
{
    random_state = mixed(key ^ (uint64_t)(rank + 1) * UINT64_C(0xd1342543de82ef95));
    a->seen = recipe_random(1 + (int)below(3), 1);
    a->held = recipe_random((int)below(4), below(4) != 0);
    struct map *seen = recipe_map(a->seen), *held = recipe_map(a->held);
    int64_t all = map_size(seen);
    a->shift = below(2000);
    a->offset = below(400);
    a->count = 1 + below(60);
    a->bytes = 0;
    if (!seen->too_many && all && map_true_lb(seen) >= 0 && !falls(seen) && !held->too_many &&
        held->n && map_extent(seen) >= map_true_ub(seen) - map_true_lb(seen)) {
        int64_t want = a->count * map_size(held);
        if (want < MEMORY_BYTES &&
            write_out(seen, a->offset, want, a->shift, FILE_BYTES, a->file_at) == want &&
            write_out(held, 0, want, MIDDLE, MEMORY_BYTES, a->memory_at) == want)
            a->bytes = want;
    }
    if (!a->bytes)
        a->count = 0;
    free(seen);
    free(held);
}

static void drop(struct ask *a)
{
    recipe_destroy(a->seen);
    recipe_destroy(a->held);
}

/* ---- groups ---- */

struct set {
    SHMEM_Comm comm;
    int rank, size;
    char path[4096];
};

static void choose_set(struct set *s, int64_t kind, const char *folder)
{
    int start = 0, log_stride = 0, n = job.all;
    *s = (struct set){.comm = SHMEM_COMM_WORLD};
    if (kind == 1) {
        s->comm = SHMEM_COMM_SELF;
        start = job.me;
        n = 1;
    } else if (kind == 2) {
        log_stride = 1;
        start = job.me % 2;
        n = (job.all - start + 1) / 2;
    } else if (kind == 3) {
        int half = (job.all + 1) / 2;
        start = job.me < half ? 0 : half;
        n = job.me < half ? half : job.all - half;
    }
    if (kind > 1)
        CHECK(SHMEM_Comm_active_set(start, log_stride, n, &s->comm) == 0, "%s",
              SHMEM_Last_error()->text);
    s->rank = (job.me - start) >> log_stride;
    s->size = n;
    int rank, all;
    CHECK(SHMEM_Comm_rank(s->comm, &rank) == 0 && rank == s->rank, "rank");
    CHECK(SHMEM_Comm_size(s->comm, &all) == 0 && all == n, "size");
    CHECK(SHMEM_Comm_rank(SHMEM_COMM_NULL, &rank) == SHMEM_ERR_COMM, "rank in no group");
    snprintf(s->path, sizeof s->path, "%s/file.%d", folder, start);
}

/* ---- a case ---- */

static void check(int code, const char *call)
{
    CHECK(code == SHMEM_SUCCESS, "%s: %s", call, SHMEM_Last_error()->text);
}

/* Of which rank 0 of the group makes a file, or not. */
static void begin_file(const struct set *s, uint64_t key)
{
    size = key % 3 ? (int64_t)(key % FILE_BYTES) : 0;
    for (int64_t i = 0; i < FILE_BYTES + 100; i++)
        expected[i] = i < size ? byte_of(key, 3 * i) : 0;
    if (s->rank == 0) {
        unlink(s->path);
        int fd = size ? open(s->path, O_RDWR | O_CREAT, 0600) : -1;
        CHECK(!size || brg_io_pwrite_by(pwrite, fd, expected, (size_t)size, 0, NULL) == 0, "file");
        close(fd);
    }
}

static void compare(const struct set *s, const char *when)
{
    static char got[FILE_BYTES + 100];
    int fd = open(s->path, O_RDONLY);
    int64_t n = brg_io_pread(fd, got, sizeof got, 0), at = 0;
    close(fd);
    while (at < n && got[at] == expected[at])
        at++;
    CHECK(n == size && at == n, "%s: %ld bytes, not %ld; byte %ld is wrong", when, (long)n,
          (long)size, (long)at);
}

/* By an explicit offset or the pointer; by all or alone. */
static int transfer(SHMEM_File f, int64_t way, int writes, const struct ask *a, char *memory,
                    SHMEM_Datatype type, SHMEM_Status *status)
{
    if (way & 2) {
        check(SHMEM_File_seek(f, a->offset, SHMEM_SEEK_SET), "seek");
        if (way & 1)
            return writes ? SHMEM_File_write_all(f, memory, a->count, type, status)
                          : SHMEM_File_read_all(f, memory, a->count, type, status);
        return writes ? SHMEM_File_write(f, memory, a->count, type, status)
                      : SHMEM_File_read(f, memory, a->count, type, status);
    }
    if (way & 1)
        return writes ? SHMEM_File_write_at_all(f, a->offset, memory, a->count, type, status)
                      : SHMEM_File_read_at_all(f, a->offset, memory, a->count, type, status);
    return writes ? SHMEM_File_write_at(f, a->offset, memory, a->count, type, status)
                  : SHMEM_File_read_at(f, a->offset, memory, a->count, type, status);
}

/* Nothing is under the name before the file is closed. */
static int is_published(void)
{
    const char *hints = getenv("BRIGADE_IO");
    return hints && strstr(hints, "publish=yes");
}

/* One call of every rank of the group. Returns this one's bytes. */
static int64_t call(const struct set *s, SHMEM_File f, uint64_t key, int writes, int64_t way)
{
    static char memory[MEMORY_BYTES], wanted[MEMORY_BYTES];
    static struct ask a;
    int64_t moved = 0;
    for (int rank = 0; writes && rank < s->size; rank++) {
        draw(&a, key, rank);
        for (int64_t i = 0; i < a.bytes; i++) {
            expected[a.file_at[i]] = byte_of(key, a.file_at[i]);
            size = a.file_at[i] >= size ? a.file_at[i] + 1 : size;
        }
        drop(&a);
    }
    draw(&a, key, s->rank);
    memset(memory, 0x55, sizeof memory);
    for (int64_t i = 0; writes && i < a.bytes; i++)
        memory[a.memory_at[i]] = byte_of(key, a.file_at[i]);
    memcpy(wanted, memory, sizeof wanted);
    for (int64_t i = 0; i < a.bytes; i++)
        if (writes || a.file_at[i] < size) {
            moved++;
            wanted[a.memory_at[i]] = expected[a.file_at[i]];
        }
    SHMEM_Datatype seen = a.bytes ? ready(a.seen) : SHMEM_BYTE, held = ready(a.held);
    SHMEM_Status status;
    SHMEM_Count told;
    SHMEM_Offset position;
    check(SHMEM_File_set_view(f, a.shift, SHMEM_BYTE, seen, "native", SHMEM_INFO_NULL), "set_view");
    check(transfer(f, way, writes, &a, memory + MIDDLE, held, &status), writes ? "write" : "read");
    CHECK(memcmp(memory, wanted, sizeof memory) == 0, "rank %d has other bytes", s->rank);
    CHECK(SHMEM_Get_count_c(&status, SHMEM_BYTE, &told) == 0 && told == moved, "%ld bytes, not %ld",
          (long)told, (long)moved);
    SHMEM_File_get_position(f, &position);
    CHECK(!(way & 2) || position == a.offset + moved, "at %ld", (long)position);
    check(SHMEM_File_sync(f), "sync"); /* and nobody draws again before all have moved */
    if (a.bytes)
        give_back(a.seen, seen);
    give_back(a.held, held);
    drop(&a);
    return moved;
}

/* Of the kinds of groups, all ranks come most often. */
static int64_t run_case(uint64_t key, const char *folder, int kinds)
{
    struct set s;
    SHMEM_File f;
    SHMEM_Offset told;
    int64_t moved = 0;
    random_state = mixed(key);
    choose_set(&s, below(2) ? 0 : below(kinds), folder);
    int amode = (below(2) ? SHMEM_MODE_RDWR : SHMEM_MODE_WRONLY) | SHMEM_MODE_CREATE;
    begin_file(&s, key);
    check(SHMEM_File_open(s.comm, s.path, amode, SHMEM_INFO_NULL, &f), "open");
    for (int i = 0; i < CALLS && !failures; i++) {
        random_state = mixed(key + 77 * (uint64_t)i);
        int writes = amode & SHMEM_MODE_WRONLY || below(2);
        moved += call(&s, f, key + 1 + (uint64_t)i, writes, below(4));
        CHECK(SHMEM_File_get_size(f, &told) == 0 && told == size, "size %ld, not %ld", (long)told,
              (long)size);
        if (!is_published())
            compare(&s, "after a call");
    }
    if (key % 5 == 0) {
        size = is_published() ? size + 100 : size * 2 / 3;
        check(SHMEM_File_set_size(f, size), "set_size");
        memset(expected + size, 0, (size_t)(FILE_BYTES - size > 0 ? FILE_BYTES - size : 0));
    }
    check(SHMEM_File_close(&f), "close");
    CHECK(f == SHMEM_FILE_NULL, "closed");
    check(SHMEM_File_open(s.comm, s.path, SHMEM_MODE_RDONLY, SHMEM_INFO_NULL, &f), "open again");
    moved += call(&s, f, key + 99, 0, (int64_t)(key >> 7));
    compare(&s, "at the end");
    check(SHMEM_File_close(&f), "close");
    return moved;
}

int main(int argc, char **argv)
{
    job_start(&job, argv + 1);
    if (argc < 6)
        return 2;
    uint64_t seed = strtoull(argv[4], NULL, 10);
    int64_t moved = 0, cases = atoi(argv[5]);
    for (int64_t c = 0; c < cases && !failures; c++) {
        moved += run_case(seed * 1000003 + (uint64_t)c * 7919, argv[3], job.shmem ? 4 : 2);
        if (failures)
            printf("case %ld of seed %lu\n", (long)c, (unsigned long)seed);
    }
    CHECK(failures || moved > 100 * cases, "only %ld bytes", (long)moved);
    job_end(&job, failures);
}
