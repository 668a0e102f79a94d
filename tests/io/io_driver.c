/* Makes the cases of a file (io_case.h), one after another, and compares what is in the files, and
 * what is read from them by another number of ranks, with one process's own reckoning.
 *
 *     io_driver CASES FOLDER     as many ranks as a case needs, or more
 *
 * Prints "case LINE" before each, "WRONG ..." for what was wrong; ends with 1 then. */
#include <mpi.h>

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io_case.h"

enum {
    PLACES = 3 /* names that are used in turn: each file but the first takes the place of one */
};

static int rank, wrong;
static const struct test_case *now;
static char path[4096];

static void tell(const char *format, ...)
{
    va_list args;
    char text[2048];
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    printf("WRONG rank %d: %s; %s\n", rank, text, now->line);
    fflush(stdout);
    wrong = 1;
}

static int fine(int rc, const struct brg_error *err, const char *what)
{
    if (rc)
        tell("%s: %d, %s (rank %d, offset %ld, %s)", what, rc, err->text, err->rank,
             (long)err->offset, err->path);
    return rc == 0;
}

/* --- The file that must come of it ------------------------------------------------------- */

struct reference {
    const struct test_case *c;
    unsigned char *bytes; /* [0, size) */
    uint64_t end;         /* of the file */
    uint64_t key;
};

static uint64_t index_of(const struct test_case *c, uint64_t offset)
{
    return offset < c->size / 2 ? offset : offset - c->gap;
}

static void put(void *with, uint64_t offset, int64_t at, uint64_t bytes, uint64_t first)
{
    struct reference *r = with;
    unsigned char *to = r->bytes + index_of(r->c, offset);
    (void)at;
    for (uint64_t i = 0; i < bytes; i++)
        to[i] = byte_of(r->key, first + i);
    if (offset + bytes > r->end)
        r->end = offset + bytes;
}

static void reckon(struct reference *r, enum phase phase)
{
    static struct ask ask;
    for (int call = 0; call < r->c->calls; call++)
        for (int who = 0; who < r->c->writers; who++)
            if (call < calls_of(r->c, phase, who)) {
                ask_make(r->c, phase, who, call, &ask);
                r->key = ask.key;
                ask_walk(&ask, put, r);
            }
}

/* --- Writing ----------------------------------------------------------------------------- */

struct memory {
    unsigned char *bytes;
    uint64_t key;
    const struct reference *expected; /* of a read */
    int64_t bad;
    unsigned char found, right; /* there */
};

static void fill(void *with, uint64_t offset, int64_t at, uint64_t bytes, uint64_t first)
{
    struct memory *m = with;
    (void)offset;
    for (uint64_t i = 0; i < bytes; i++)
        m->bytes[at + (int64_t)i] = byte_of(m->key, first + i);
}

static unsigned char *room_for(const struct ask *ask)
{
    size_t bytes = ask->kind == BLOCK ? (size_t)ask->room : (size_t)ask->bytes;
    unsigned char *room = calloc(1, bytes + 1);
    if (!room)
        MPI_Abort(MPI_COMM_WORLD, 9);
    return room;
}

static int transfer(brg_file *f, const struct ask *ask, unsigned char *m, int writing,
                    struct brg_error *err)
{
    const int64_t *strides = ask->gapless ? NULL : ask->strides;
    const brg_piece *only = ask->pieces;
    if (ask->kind == NOTHING)
        return writing ? brg_file_write(f, 0, NULL, 0, err) : brg_file_read(f, 0, NULL, 0, err);
    if (ask->kind == STRETCH)
        return writing ? brg_file_write(f, only->offset, m, only->bytes, err)
                       : brg_file_read(f, only->offset, m, only->bytes, err);
    if (ask->kind == BLOCK)
        return writing ? brg_file_write_block(f, ask->offset, ask->element, ask->ndims, ask->shape,
                                              ask->start, ask->count, strides, m + ask->low, err)
                       : brg_file_read_block(f, ask->offset, ask->element, ask->ndims, ask->shape,
                                             ask->start, ask->count, strides, m + ask->low, err);
    return writing ? brg_file_write_pieces(f, ask->pieces, ask->n, m, err)
                   : brg_file_read_pieces(f, ask->pieces, ask->n, m, err);
}

static void write_file(MPI_Comm comm, const struct test_case *c, enum phase phase, uint64_t size)
{
    static struct ask ask;
    struct brg_error err;
    brg_file *f;
    unsigned flags = phase == WRITING ? BRG_WRITE | BRG_CREATE : BRG_WRITE;
    if (!fine(brg_file_open(comm, path, flags, c->hints, &f, &err), &err, "open to write"))
        return;
    int ok = 1;
    for (int call = 0; ok && call < calls_of(c, phase, rank); call++) {
        ask_make(c, phase, rank, call, &ask);
        struct memory m = {.bytes = room_for(&ask), .key = ask.key};
        ask_walk(&ask, fill, &m);
        ok = fine(transfer(f, &ask, m.bytes, 1, &err), &err, "write");
        free(m.bytes);
    }
    ok = ok && fine(brg_file_commit(f, &err), &err, "commit");
    if (ok && brg_file_size(f) != size)
        tell("committed %lu bytes, not %lu", brg_file_size(f), size);
    int rc = brg_file_close(f, &err);
    if (ok)
        fine(rc, &err, "close");
}

/* --- Reading ----------------------------------------------------------------------------- */

static void compare(void *with, uint64_t offset, int64_t at, uint64_t bytes, uint64_t first)
{
    struct memory *m = with;
    const unsigned char *right = m->expected->bytes + index_of(m->expected->c, offset);
    (void)first;
    for (uint64_t i = 0; i < bytes && m->bad < 0; i++)
        if (m->bytes[at + (int64_t)i] != right[i]) {
            m->bad = (int64_t)(offset + i);
            m->found = m->bytes[at + (int64_t)i];
            m->right = right[i];
        }
}

static void farthest(void *with, uint64_t offset, int64_t at, uint64_t bytes, uint64_t first)
{
    uint64_t *end = with;
    (void)at;
    (void)first;
    *end = offset + bytes > *end ? offset + bytes : *end;
}

static void read_file(MPI_Comm comm, const struct test_case *c, const struct reference *r)
{
    static struct ask ask;
    struct brg_error err;
    brg_file *f;
    char hints[sizeof c->hints + 16];
    snprintf(hints, sizeof hints, "%s:verify=yes", c->hints);
    if (!fine(brg_file_open(comm, path, BRG_READ, hints, &f, &err), &err, "open to read"))
        return;
    if (brg_file_size(f) != r->end)
        tell("read as %lu bytes, not %lu", brg_file_size(f), r->end);
    for (int call = 0; call < calls_of(c, READING, rank); call++) {
        uint64_t end = 0;
        ask_make(c, READING, rank, call, &ask);
        ask_walk(&ask, farthest, &end);
        if (end > r->end)
            continue;
        struct memory m = {.bytes = room_for(&ask), .expected = r, .bad = -1};
        if (fine(transfer(f, &ask, m.bytes, 0, &err), &err, "read"))
            ask_walk(&ask, compare, &m);
        if (m.bad >= 0)
            tell("read call %d of kind %d: wrong from byte %ld on: %d, not %d", call, (int)ask.kind,
                 (long)m.bad, m.found, m.right);
        free(m.bytes);
    }
    fine(brg_file_close(f, &err), &err, "close after reading");
}

/* One rank asks for a byte past the end: all are told, and of the same place. */
static void read_past(MPI_Comm comm, const struct test_case *c, const struct reference *r)
{
    struct brg_error err = {.rank = -1};
    brg_file *f;
    char byte;
    int last = c->readers - 1;
    if (!fine(brg_file_open(comm, path, BRG_READ, c->hints, &f, &err), &err, "open to read"))
        return;
    int rc = brg_file_read(f, r->end, &byte, rank == last, &err);
    if (rc != -ENODATA || err.rank != last || err.offset != (int64_t)r->end)
        tell("past the end: %d of rank %d at %ld, %s", rc, err.rank, (long)err.offset, err.text);
    brg_file_close(f, &err);
}

/* What any program finds in the file; not for layouts that only Brigade reads. */
static void look(const struct test_case *c, const struct reference *r)
{
    unsigned char *found = malloc(c->size + 1);
    struct stat st;
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0 || (uint64_t)st.st_size != r->end)
        tell("the file has %ld bytes, not %lu", fd < 0 ? -1 : (long)st.st_size, r->end);
    for (int part = 0; found && part < 2; part++) {
        uint64_t from = part ? c->size / 2 : 0, to = part ? c->size : c->size / 2;
        memset(found, 0, c->size + 1);
        if (fd < 0 || pread(fd, found, to - from, (off_t)place_of(c, from)) < 0)
            break;
        for (uint64_t i = from; i < to; i++)
            if (found[i - from] != r->bytes[i]) {
                tell("the file is wrong from byte %lu on: %d, not %d", place_of(c, i),
                     found[i - from], r->bytes[i]);
                part = 2;
                break;
            }
    }
    free(found);
    close(fd);
}

/* --- One case ---------------------------------------------------------------------------- */

static MPI_Comm first_ranks(int n)
{
    MPI_Comm comm;
    MPI_Comm_split(MPI_COMM_WORLD, rank < n ? 0 : MPI_UNDEFINED, rank, &comm);
    return comm;
}

static void write_with(const struct test_case *c, enum phase phase, struct reference *r)
{
    MPI_Comm comm = first_ranks(c->writers);
    reckon(r, phase);
    if (comm != MPI_COMM_NULL) {
        write_file(comm, c, phase, r->end);
        MPI_Comm_free(&comm);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0 && !strstr(c->hints, "layout=parts"))
        look(c, r);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void make_case(struct test_case *c)
{
    struct reference r = {.c = c, .bytes = calloc(1, c->size + 1)};
    if (!r.bytes)
        MPI_Abort(MPI_COMM_WORLD, 9);
    now = c;
    write_with(c, WRITING, &r);
    if (strcmp(c->update, "none") != 0) {
        size_t n = strlen(c->hints);
        snprintf(c->hints + n, sizeof c->hints - n, ":update=%s", c->update);
        write_with(c, UPDATING, &r);
    }
    MPI_Comm comm = first_ranks(c->readers);
    if (comm != MPI_COMM_NULL) {
        read_file(comm, c, &r);
        if (c->seed % 4 == 0)
            read_past(comm, c, &r);
        MPI_Comm_free(&comm);
    }
    free(r.bytes);
}

int main(int argc, char **argv)
{
    static struct test_case c;
    char line[512];
    int any = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    FILE *cases = argc == 3 ? fopen(argv[1], "r") : NULL;
    if (!cases)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int n = 0; fgets(line, sizeof line, cases); n++) {
        if (!case_read(&c, line))
            MPI_Abort(MPI_COMM_WORLD, 3);
        snprintf(path, sizeof path, "%s/file%d", argv[2], n % PLACES);
        if (rank == 0) {
            printf("case %s\n", c.line);
            fflush(stdout);
        }
        make_case(&c);
    }
    fclose(cases);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Finalize();
    return any;
}
