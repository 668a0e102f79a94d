/* A random program of MPI-IO: FILE SHADOW FIRST CASES WAYS. Every call is done once more on SHADOW,
 * by pread and pwrite, etype by etype, at the offset that MPI_File_get_byte_offset says; memory,
 * status, position, and in the end the file must be the same. What is not is printed: "WRONG ...".
 *
 * Ranks write to bytes of their own: a view's tile is cut into slots, each with an owner, or none;
 * a filetype is the slots of one rank. Whoever reads sees any slots. */
#include <fcntl.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_SLOTS 40
#define MOST_ITEMS 300
#define ROOM (MOST_ITEMS * 64)

static int rank, size, wrong;

/* Two streams of random numbers: the same on all ranks, and one's own. */
static uint64_t common, own;

static unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((*state >> 33) % below);
}

static MPI_Datatype etypes[4];
static const int etype_bytes[] = {1, 4, 8, 3};

struct world {
    MPI_File file;
    int shadow;
    unsigned seed;
    int etype; /* of the view */
    int ways;  /* bits: those of `enum way` that are taken */
    char memory[ROOM], before[ROOM], again[ROOM];
    char packed[ROOM], packed_before[ROOM], there[ROOM];
};

/* The slots of one owner as a type, in one of the ways that MPI has to say it; `step` etypes from
 * one slot to the next. */
static MPI_Datatype slots_type(const int *owner, int slots, int step, int who, int etype)
{
    MPI_Datatype list, type;
    int places[MOST_SLOTS], n = 0;
    for (int i = 0; i < slots; i++)
        if (owner[i] == who)
            places[n++] = i * step;
    MPI_Type_create_indexed_block(n, 1, places, etypes[etype], &list);
    MPI_Type_create_resized(list, 0, (MPI_Aint)slots * step * etype_bytes[etype], &type);
    MPI_Type_commit(&type);
    MPI_Type_free(&list);
    return type;
}

/* Blocks of `block` etypes, one rank after another, with a hole behind all of them. */
static MPI_Datatype turns_type(int block, int hole, int who, int etype)
{
    int sizes[1] = {block * size + hole}, parts[1] = {block}, starts[1] = {block * who};
    MPI_Datatype type;
    MPI_Type_create_subarray(1, sizes, parts, starts, MPI_ORDER_C, etypes[etype], &type);
    MPI_Type_commit(&type);
    return type;
}

static MPI_Datatype part_of_matrix(int rows, int columns, int who, int etype)
{
    int sizes[2] = {rows, columns * size}, parts[2] = {rows, columns},
        starts[2] = {0, columns * who};
    int order = draw(&common, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
    MPI_Datatype type;
    MPI_Type_create_subarray(2, sizes, parts, starts, order, etypes[etype], &type);
    MPI_Type_commit(&type);
    return type;
}

static void set_view(struct world *w, int reading)
{
    int owner[MOST_SLOTS], slots = size + 1 + (int)draw(&common, MOST_SLOTS - 2 * size);
    int kind = (int)draw(&common, 5), who = reading ? (int)draw(&own, (unsigned)size) : rank;
    MPI_Offset displacement = draw(&common, 3) ? (MPI_Offset)draw(&common, 100) : 0;
    MPI_Datatype type;
    w->etype = (int)draw(&common, 4);
    for (int i = 0; i < slots; i++)
        owner[i] = i < size ? i : (int)draw(&common, (unsigned)size + 1);
    int block = 1 + (int)draw(&common, 7), hole = (int)draw(&common, 3);
    if (kind == 0)
        type = slots_type(owner, slots, 1, who, w->etype);
    else if (kind == 4) /* far apart: over pages, as a rule */
        type = slots_type(owner, slots, 200 + (int)draw(&common, 4000), who, w->etype);
    else if (kind == 1)
        type = turns_type(block, hole, who, w->etype);
    else if (kind == 2)
        type = part_of_matrix(1 + hole, block, who, w->etype);
    else /* every rank sees all, and takes a part that is its own by the offset */
        type = turns_type(block * 200, 0, reading ? rank : who, w->etype);
    MPI_File_set_view(w->file, displacement, etypes[w->etype], type, "native", MPI_INFO_NULL);
    MPI_Type_free(&type);
}

/* Memory for `items` etypes: together, in turns with gaps, or from the last to the first. */
static MPI_Datatype memory_type(struct world *w, int items, int *count)
{
    MPI_Datatype type, inner;
    int n = etype_bytes[w->etype];
    switch (draw(&own, 4)) {
    case 0:
        MPI_Type_vector(items, 1, 2, etypes[w->etype], &type);
        *count = items ? 1 : 0;
        break;
    case 1:
        MPI_Type_create_resized(etypes[w->etype], 0, n + 5, &type);
        *count = items;
        break;
    case 2: {
        int lengths[2] = {items / 2, items - items / 2};
        MPI_Aint places[2] = {(MPI_Aint)(items - items / 2 + 3) * n, 0};
        MPI_Type_create_hindexed(2, lengths, places, etypes[w->etype], &inner);
        MPI_Type_dup(inner, &type);
        MPI_Type_free(&inner);
        *count = items ? 1 : 0;
        break;
    }
    default: MPI_Type_contiguous(1, etypes[w->etype], &type); *count = items;
    }
    MPI_Type_commit(&type);
    return type;
}

static void expect(struct world *w, const char *call, const char *what, long long want,
                   long long got)
{
    if (want == got)
        return;
    wrong++;
    printf("WRONG case %u rank %d %s: %s is %lld, not %lld\n", w->seed, rank, call, what, got,
           want);
    fflush(stdout);
}

static int pack(const char *memory, int count, MPI_Datatype type, char *out)
{
    int at = 0;
    MPI_Pack(memory, count, type, out, ROOM, &at, MPI_COMM_SELF);
    return at;
}

/* The bytes of the view from `offset` on, between the shadow and `there`; how many came before the
 * end of the file. */
static int shadow_move(struct world *w, int write, MPI_Offset offset, int items)
{
    int n = etype_bytes[w->etype], done = 0;
    for (int i = 0; i < items; i++) {
        MPI_Offset at;
        MPI_File_get_byte_offset(w->file, offset + i, &at);
        ssize_t moved = write ? pwrite(w->shadow, w->there + i * n, (size_t)n, at)
                              : pread(w->shadow, w->there + i * n, (size_t)n, at);
        done += (int)moved;
        if (moved < n)
            break;
    }
    return done;
}

static void check(struct world *w, const char *call, int write, MPI_Offset offset, int items,
                  int count, MPI_Datatype type, MPI_Status *status)
{
    int n = pack(w->memory, count, type, w->packed), told, at = 0;
    pack(w->before, count, type, w->packed_before);
    if (write)
        memcpy(w->there, w->packed, (size_t)n);
    int got = shadow_move(w, write, offset, items);
    MPI_Get_elements(status, MPI_BYTE, &told);
    expect(w, call, "bytes of the status", got, told);
    expect(w, call, "what was moved is right", 0, memcmp(w->there, w->packed, (size_t)got) != 0);
    expect(w, call, "the rest was left alone", 0,
           memcmp(w->packed + got, w->packed_before + got, (size_t)(n - got)) != 0);
    memcpy(w->again, w->before, ROOM);
    MPI_Unpack(w->packed, n, &at, w->again, count, type, MPI_COMM_SELF);
    expect(w, call, "gaps of memory were left alone", 0, memcmp(w->again, w->memory, ROOM) != 0);
}

enum way {
    BLOCKING,
    SPLIT,
    NONBLOCKING,
    ALONE,
    N_WAYS
};

static int move(struct world *w, int write, int at, int way, MPI_Offset offset, int count,
                MPI_Datatype type, MPI_Status *status)
{
    MPI_Request request;
    MPI_File f = w->file;
    char *m = w->memory;
    int rc;
    switch (way * 4 + write * 2 + at) {
    case BLOCKING * 4: return MPI_File_read_all(f, m, count, type, status);
    case BLOCKING * 4 + 1: return MPI_File_read_at_all(f, offset, m, count, type, status);
    case BLOCKING * 4 + 2: return MPI_File_write_all(f, m, count, type, status);
    case BLOCKING * 4 + 3: return MPI_File_write_at_all(f, offset, m, count, type, status);
    case SPLIT * 4:
        rc = MPI_File_read_all_begin(f, m, count, type);
        return rc ? rc : MPI_File_read_all_end(f, m, status);
    case SPLIT * 4 + 1:
        rc = MPI_File_read_at_all_begin(f, offset, m, count, type);
        return rc ? rc : MPI_File_read_at_all_end(f, m, status);
    case SPLIT * 4 + 2:
        rc = MPI_File_write_all_begin(f, m, count, type);
        return rc ? rc : MPI_File_write_all_end(f, m, status);
    case SPLIT * 4 + 3:
        rc = MPI_File_write_at_all_begin(f, offset, m, count, type);
        return rc ? rc : MPI_File_write_at_all_end(f, m, status);
    case NONBLOCKING * 4:
        rc = MPI_File_iread_all(f, m, count, type, &request);
        return rc ? rc : MPI_Wait(&request, status);
    case NONBLOCKING * 4 + 1:
        rc = MPI_File_iread_at_all(f, offset, m, count, type, &request);
        return rc ? rc : MPI_Wait(&request, status);
    case NONBLOCKING * 4 + 2:
        rc = MPI_File_iwrite_all(f, m, count, type, &request);
        return rc ? rc : MPI_Wait(&request, status);
    case NONBLOCKING * 4 + 3:
        rc = MPI_File_iwrite_at_all(f, offset, m, count, type, &request);
        return rc ? rc : MPI_Wait(&request, status);
    case ALONE * 4: return MPI_File_read(f, m, count, type, status);
    case ALONE * 4 + 1: return MPI_File_read_at(f, offset, m, count, type, status);
    case ALONE * 4 + 2: return MPI_File_write(f, m, count, type, status);
    default: return MPI_File_write_at(f, offset, m, count, type, status);
    }
}

static void one_call(struct world *w, int write, int reaches_end)
{
    static const char *const ways[] = {"blocking", "split", "nonblocking", "alone"};
    int at = (int)draw(&common, 2), way = (int)draw(&common, N_WAYS), count;
    while (!(w->ways >> way & 1))
        way = (way + 1) % N_WAYS;
    int items = draw(&own, 5) ? (int)draw(&own, MOST_ITEMS) : 0;
    MPI_Offset offset = (MPI_Offset)draw(&own, reaches_end ? 600 : 200), before, after;
    MPI_Status status;
    char call[64];
    MPI_Datatype type = memory_type(w, items, &count);
    for (size_t i = 0; i < ROOM; i++)
        w->memory[i] = (char)draw(&own, 256);
    memcpy(w->before, w->memory, ROOM);
    if (!at)
        MPI_File_seek(w->file, offset, MPI_SEEK_SET);
    MPI_File_get_position(w->file, &before);
    memset(&status, 0, sizeof status);
    snprintf(call, sizeof call, "%s %s%s", ways[way], write ? "write" : "read", at ? " at" : "");
    MPI_Barrier(MPI_COMM_WORLD); /* nobody has begun to write to the shadow */
    expect(w, call, "error", 0, move(w, write, at, way, offset, count, type, &status));
    MPI_File_get_position(w->file, &after);
    expect(w, call, "position", at ? before : before + items, after);
    MPI_Barrier(MPI_COMM_WORLD); /* on one machine, what was written is seen */
    check(w, call, write, offset, items, count, type, &status);
    MPI_Type_free(&type);
}

static void compare_files(struct world *w)
{
    static char ours[1 << 16], shadow[1 << 16];
    MPI_Offset bytes;
    struct stat st;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_get_size(w->file, &bytes);
    fstat(w->shadow, &st);
    expect(w, "end", "size of the file", st.st_size, bytes);
    MPI_File_set_view(w->file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
    for (MPI_Offset at = 0; at < bytes && rank == 0; at += (MPI_Offset)sizeof ours) {
        int n = (int)(bytes - at < (MPI_Offset)sizeof ours ? bytes - at : (MPI_Offset)sizeof ours);
        MPI_File_read_at(w->file, at, ours, n, MPI_BYTE, MPI_STATUS_IGNORE);
        if (pread(w->shadow, shadow, (size_t)n, at) != n || memcmp(ours, shadow, (size_t)n))
            expect(w, "end", "the file is the shadow's, from", -1, at);
    }
}

static void one_case(struct world *w, const char *path, const char *shadow, unsigned seed)
{
    common = seed * 1000003u + 17u;
    own = common + 7919u * (unsigned)(rank + 1);
    draw(&common, 2), draw(&own, 2);
    w->seed = seed;
    MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &w->file);
    w->shadow = open(shadow, O_RDWR | O_CREAT, 0600);
    for (int phase = 0, n = 2 + (int)draw(&common, 4); phase < n; phase++) {
        int write = phase == 0 || draw(&common, 2);
        if (phase || draw(&common, 4))
            set_view(w, !write);
        else
            w->etype = 0, write = 0;
        for (int i = 0, calls = 1 + (int)draw(&common, 4); i < calls; i++)
            one_call(w, write, !write && draw(&common, 3) == 0);
    }
    compare_files(w);
    MPI_File_close(&w->file);
    close(w->shadow);
    if (rank == 0)
        unlink(path), unlink(shadow);
}

int main(int argc, char **argv)
{
    static struct world w;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    w.ways = atoi(argv[5]);
    etypes[0] = MPI_BYTE, etypes[1] = MPI_INT, etypes[2] = MPI_DOUBLE;
    MPI_Type_contiguous(3, MPI_CHAR, &etypes[3]);
    MPI_Type_commit(&etypes[3]);
    for (unsigned i = 0; i < (unsigned)atoi(argv[4]); i++)
        one_case(&w, argv[1], argv[2], (unsigned)atoi(argv[3]) + i);
    MPI_Type_free(&etypes[3]);
    MPI_Finalize();
    return wrong != 0;
}
