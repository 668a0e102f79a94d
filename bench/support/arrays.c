/* What programs write as named arrays, through libbrigade_io, and the same bytes through MPI-IO.
 *
 *     arrays FILE PATTERN ROUNDS SYNC
 *
 * A pattern is a list of arrays, of which every rank has a block, moved by a call each. A round
 * writes a new file and reads it by each of the two, in turns; what is read is compared. SYNC 1:
 * both are on the disk, and appear under their names, when they are closed; 0: neither is synced,
 * and MPI-IO writes under the name. Rank 0 prints a line of JSON a round and way: seconds of the
 * slowest rank to open, to move, to close, and in total. PATTERN:
 *
 *     many     32 arrays of 256 KiB, a stretch of each rank
 *     large    4 arrays of 8 MiB, the same
 *     small    100 arrays of 4 KiB, the same
 *     boxes    16 arrays of 64^3 doubles, a box of each rank
 *     amr      48 arrays, of each rank an odd number of elements, sometimes none
 *     header   100 bytes of rank 0
 *     inplace  a file that is there is changed: 4 KiB of each rank, a megabyte apart
 *     halos    4 arrays of 1024^2 doubles, boxes that share two rows and columns with the next */
#include <mpi.h>

#include <brigade/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 1000

struct array {
    char name[16];
    int dims;
    uint64_t shape[3], start[3], count[3];
    MPI_Offset at; /* where MPI-IO has it in the file */
    MPI_Datatype view;
    long memory, bytes; /* of this rank's block */
};

static struct array array[MOST];
static int rank, ranks, arrays, in_place, shares, syncs;
static long room;
static MPI_Offset file_end;
static char *memory, *expected;

static int is(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0;
}

static void die(const char *what)
{
    fprintf(stderr, "rank %d: %s\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/* ---- patterns ---- */

static void add(int dims, const uint64_t *shape, const uint64_t *start, const uint64_t *count)
{
    struct array *a = &array[arrays];
    int whole[3], part[3], from[3], empty = 0;
    long bytes = 8, all = 8;
    snprintf(a->name, sizeof a->name, "a%d", arrays++);
    a->dims = dims;
    for (int d = 0; d < dims; d++) {
        a->shape[d] = shape[d];
        a->start[d] = start[d];
        a->count[d] = count[d];
        whole[d] = (int)shape[d];
        part[d] = (int)count[d];
        from[d] = (int)start[d];
        bytes *= part[d];
        all *= whole[d];
        empty |= !part[d];
    }
    if (empty)
        MPI_Type_contiguous(0, MPI_BYTE, &a->view);
    else
        MPI_Type_create_subarray(dims, whole, part, from, MPI_ORDER_C, MPI_DOUBLE, &a->view);
    MPI_Type_commit(&a->view);
    a->at = file_end;
    file_end += all;
    a->memory = room;
    a->bytes = bytes;
    room += bytes;
}

static void stretches(int n, uint64_t elements)
{
    uint64_t own = elements / (uint64_t)ranks, start = own * (uint64_t)rank;
    elements = own * (uint64_t)ranks;
    for (int i = 0; i < n; i++)
        add(1, &elements, &start, &own);
}

static void uneven(int n)
{
    unsigned long seed = 4711;
    for (int i = 0; i < n; i++) {
        uint64_t all = 0, start = 0, own = 0;
        for (int r = 0; r < ranks; r++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            uint64_t count = (seed >> 33) % 8 ? (seed >> 36) % 16384 : 0;
            if (r == rank) {
                start = all;
                own = count;
            }
            all += count;
        }
        add(1, &all, &start, &own);
    }
}

static void boxes(int n, int dims, uint64_t side, uint64_t border)
{
    int grid[3] = {0, 0, 0};
    uint64_t whole[3], from[3], part[3];
    MPI_Dims_create(ranks, dims, grid);
    for (int d = 0, below = 1; d < dims; d++, below = 1) {
        for (int e = d + 1; e < dims; e++)
            below *= grid[e];
        uint64_t own = side / (uint64_t)grid[d];
        uint64_t mine = (uint64_t)(rank / below % grid[d]);
        whole[d] = own * (uint64_t)grid[d];
        from[d] = own * mine;
        part[d] = own;
        if (border && mine + 1 < (uint64_t)grid[d])
            part[d] += border;
    }
    shares = border > 0;
    for (int i = 0; i < n; i++)
        add(dims, whole, from, part);
}

static void make(const char *pattern)
{
    uint64_t all, start, own;
    if (is(pattern, "many"))
        stretches(32, 32 << 10);
    else if (is(pattern, "large"))
        stretches(4, 1 << 20);
    else if (is(pattern, "small"))
        stretches(100, 512);
    else if (is(pattern, "boxes"))
        boxes(16, 3, 64, 0);
    else if (is(pattern, "halos"))
        boxes(4, 2, 1024, 2);
    else if (is(pattern, "amr"))
        uneven(48);
    else if (is(pattern, "header")) {
        all = own = 13;
        start = 0;
        if (rank)
            own = 0;
        add(1, &all, &start, &own);
    } else if (is(pattern, "inplace")) {
        in_place = 1;
        all = (uint64_t)ranks << 17;
        start = (uint64_t)rank << 17;
        own = 512;
        add(1, &all, &start, &own);
    } else
        die("no such pattern");
}

/* ---- the two ways ---- */

struct took {
    double open, move, close, total;
};

static double since(double *mark)
{
    double now = MPI_Wtime(), took = now - *mark;
    *mark = now;
    return took;
}

static void check(int rc, const struct brg_error *err)
{
    if (rc)
        die(err->text);
}

static struct took by_brigade(const char *path, int writes)
{
    struct brg_error err;
    struct took took;
    brg_file *f;
    char info[64];
    unsigned flags = !writes ? BRG_READ : in_place ? BRG_WRITE : BRG_WRITE | BRG_CREATE;
    snprintf(info, sizeof info, "sync=%s%s", syncs ? "yes" : "no",
             writes && in_place ? ":update=in-place" : "");
    double mark = MPI_Wtime();
    check(brg_file_open(MPI_COMM_WORLD, path, flags, info, &f, &err), &err);
    took.open = since(&mark);
    for (int i = 0; i < arrays; i++) {
        struct array *a = &array[i];
        void *buf = memory + a->memory;
        check(writes ? brg_file_write_array(f, a->name, BRG_FLOAT64, a->dims, a->shape, a->start,
                                            a->count, NULL, buf, &err)
                     : brg_file_read_array(f, a->name, a->start, a->count, NULL, buf, &err),
              &err);
    }
    took.move = since(&mark);
    if (writes)
        check(brg_file_commit(f, &err), &err);
    check(brg_file_close(f, &err), &err);
    took.close = since(&mark);
    return took;
}

static void sync_folder(const char *path)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    *strrchr(folder, '/') = 0;
    FILE *f = fopen(folder, "r");
    if (!f || fsync(fileno(f)))
        die("cannot sync the folder");
    fclose(f);
}

static struct took by_mpi(const char *path, int writes)
{
    struct took took;
    MPI_File f;
    char beside[4096];
    int publishes = writes && syncs && !in_place;
    snprintf(beside, sizeof beside, "%s%s", path, publishes ? ".new" : "");
    double mark = MPI_Wtime();
    if (MPI_File_open(MPI_COMM_WORLD, beside,
                      writes ? MPI_MODE_CREATE | MPI_MODE_WRONLY : MPI_MODE_RDONLY, MPI_INFO_NULL,
                      &f))
        die("cannot open by MPI-IO");
    took.open = since(&mark);
    for (int i = 0; i < arrays; i++) {
        struct array *a = &array[i];
        int n = (int)a->bytes;
        void *buf = memory + a->memory;
        MPI_File_set_view(f, a->at, MPI_BYTE, a->view, "native", MPI_INFO_NULL);
        if (writes)
            MPI_File_write_all(f, buf, n, MPI_BYTE, MPI_STATUS_IGNORE);
        else
            MPI_File_read_all(f, buf, n, MPI_BYTE, MPI_STATUS_IGNORE);
    }
    took.move = since(&mark);
    if (writes && syncs)
        MPI_File_sync(f);
    MPI_File_close(&f);
    if (publishes) {
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0 && rename(beside, path))
            die("cannot rename");
        if (rank == 0)
            sync_folder(path);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    took.close = since(&mark);
    return took;
}

/* ---- rounds ---- */

/* Who is done lets others have the processors: there may be fewer than ranks. */
static struct took timed(int brigade, const char *path, int writes)
{
    MPI_Barrier(MPI_COMM_WORLD);
    struct took took = brigade ? by_brigade(path, writes) : by_mpi(path, writes);
    MPI_Barrier(MPI_COMM_WORLD);
    took.total = took.open + took.move + took.close;
    return took;
}

/* What ranks share has to be the same of both. */
static void fill(int round)
{
    for (long i = 0; i < room; i++)
        memory[i] = shares ? (char)(round + 1) : (char)(i * 7 + i / 251 + rank * 31 + round * 13);
}

/* The file, and checksums beside it. */
static void forget(const char *path)
{
    char sums[4200];
    snprintf(sums, sizeof sums, "%s.sums", path);
    if (rank == 0) {
        unlink(path);
        unlink(sums);
    }
}

static void turn(const char *way, const char *path, int round)
{
    struct took took[2], all[2];
    int brigade = is(way, "brigade");
    fill(round);
    if (!in_place)
        forget(path);
    memcpy(expected, memory, (size_t)room);
    took[0] = timed(brigade, path, 1);
    memset(memory, 0, (size_t)room);
    took[1] = timed(brigade, path, 0);
    if (memcmp(memory, expected, (size_t)room))
        die("what is read is not what was written");
    MPI_Reduce(took, all, 8, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    for (int i = 0; i < 2 && rank == 0; i++)
        printf("{\"round\": %d, \"way\": \"%s\", \"does\": \"%s\", \"open\": %.6f, \"move\": %.6f, "
               "\"close\": %.6f, \"total\": %.6f}\n",
               round, way, i ? "read" : "write", all[i].open, all[i].move, all[i].close,
               all[i].total);
}

/* A file to be changed. */
static void lay(const char *path)
{
    struct array a = array[0];
    char *zeros = calloc(1, (size_t)1 << 20);
    brg_file *f;
    struct brg_error err;
    uint64_t own = 1 << 17;
    check(brg_file_open(MPI_COMM_WORLD, path, BRG_WRITE | BRG_CREATE, NULL, &f, &err), &err);
    check(
        brg_file_write_array(f, a.name, BRG_FLOAT64, 1, a.shape, a.start, &own, NULL, zeros, &err),
        &err);
    check(brg_file_commit(f, &err), &err);
    check(brg_file_close(f, &err), &err);
    free(zeros);
}

int main(int argc, char **argv)
{
    char brigade[4096], mpi[4096];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 5)
        die("FILE PATTERN ROUNDS SYNC");
    syncs = atoi(argv[4]);
    make(argv[2]);
    memory = calloc((size_t)room + 1, 1);
    expected = malloc((size_t)room + 1);
    snprintf(brigade, sizeof brigade, "%s.brigade", argv[1]);
    snprintf(mpi, sizeof mpi, "%s.mpi", argv[1]);
    if (in_place)
        lay(brigade);
    for (int round = 0; round < atoi(argv[3]); round++)
        for (int i = 0; i < 2; i++) {
            int ours = (round + i) % 2;
            turn(ours ? "brigade" : "mpi", ours ? brigade : mpi, round);
        }
    MPI_Barrier(MPI_COMM_WORLD);
    forget(brigade);
    forget(mpi);
    MPI_Finalize();
    return 0;
}
