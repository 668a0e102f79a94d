/* What the kernels of well-known I/O benchmarks ask of MPI-IO, one by one.
 *
 *     patterns FILE PATTERN ROUNDS
 *
 * A pattern is a list of steps; in each, every rank has a view of the file and a datatype of
 * memory, and moves them in one call. Each round opens the file, which is there in full after the
 * first, does all steps as writes and closes it, and the same again as reads; what is read is
 * compared. Rank 0 prints a line of JSON a round: seconds from the first open to the last close, of
 * the slowest rank, and the bytes of all ranks. PATTERN:
 *
 *     tiles      mpi-tile-io: a tile of a dense 2-D array, 64-byte elements
 *     overlap    the same, tiles that share a border (read; written by one of the ranks)
 *     hpio       HPIO: regions of 128 bytes, 128 apart, in turns in the file and apart in memory
 *     btio       NPB BT-IO: cells of five doubles, a diagonal of sub-cubes each, with ghost cells
 *     flash      FLASH-IO: 24 variables of blocks of 8^3 doubles inside ghost cells, a call each
 *     s3d        S3D-IO: 4-D arrays of which three dimensions are shared out, a call each
 *     e3sm       E3SM-IO: lists of a few hundred short requests, a call each
 *     hacc       HACC-IO: nine variables of particles, one after another, a call each
 *     coll_perf  ROMIO's coll_perf: a 3-D block of ints
 *     noncontig  ANL's noncontig: short elements in turns, in memory and in the file
 *     interleave one 64 KiB record of each rank in turns, a call each
 *     append     4 KiB of each rank after all others', a call each
 *     halves     coll_perf, and half of the ranks have a file, the others another */
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct step {
    MPI_Offset displacement;
    MPI_Datatype view, memory; /* the view may be used from `displacement` on, and that is all */
    long at;                   /* of its memory in the buffer */
};

#define MOST 400
static MPI_Comm group = MPI_COMM_WORLD; /* that opens a file, and this process in it */
static int rank, ranks, steps, shares;  /* shares: ranks have bytes in common */
static struct step step[MOST];
static char *memory, *expected;
static long room;

static int is(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0;
}

static void add(MPI_Offset displacement, MPI_Datatype view, MPI_Datatype type)
{
    MPI_Aint lb, extent;
    MPI_Type_commit(&view);
    if (type != view)
        MPI_Type_commit(&type);
    MPI_Type_get_true_extent(type, &lb, &extent);
    step[steps++] = (struct step){displacement, view, type, room};
    room += (lb + extent + 7) / 8 * 8;
}

static MPI_Datatype bytes(long n)
{
    MPI_Datatype type;
    MPI_Type_contiguous((int)n, MPI_BYTE, &type);
    return type;
}

static MPI_Datatype block(int dims, const int *whole, const int *part, const int *start,
                          MPI_Datatype of)
{
    MPI_Datatype type;
    MPI_Type_create_subarray(dims, whole, part, start, MPI_ORDER_C, of, &type);
    return type;
}

/* ---- the patterns ---- */

static void tiles(int border)
{
    int grid[2] = {0, 0}, tile[2] = {200, 200}, whole[2], part[2], start[2];
    MPI_Dims_create(ranks, 2, grid);
    int mine[2] = {rank / grid[1], rank % grid[1]};
    for (int d = 0; d < 2; d++) {
        whole[d] = grid[d] * tile[d] + 2 * border;
        part[d] = tile[d] + 2 * border;
        start[d] = mine[d] * tile[d];
    }
    shares = border;
    add(0, block(2, whole, part, start, bytes(64)), bytes(64L * part[0] * part[1]));
}

static void hpio(void)
{
    MPI_Datatype apart, turns;
    int regions = 8192;
    MPI_Type_vector(regions, 128, 256 * ranks, MPI_BYTE, &turns);
    MPI_Type_vector(regions, 128, 256, MPI_BYTE, &apart);
    add(rank * 256L, turns, apart);
}

/* sqrt(ranks) cells of each rank, on a diagonal, as BT's multipartitioning; else slabs. */
static void btio(void)
{
    int side = 1, n = 48, ghost = 2;
    while ((side + 1) * (side + 1) <= ranks)
        side++;
    if (side * side != ranks)
        side = 1;
    int cells = side, part = n / side, length[8], whole[4] = {n, n, n, 5};
    MPI_Datatype cell[8], file, inside;
    MPI_Aint place[8];
    int slab = side == 1 ? n / ranks : 0, own[3] = {slab ? slab : part, part, part};
    for (int c = 0; c < cells; c++) {
        int i = rank % side, j = rank / side;
        int start[4] = {slab ? slab * rank : c * part, (i + c) % side * part, (j + c) % side * part,
                        0};
        int size[4] = {own[0], own[1], own[2], 5};
        cell[c] = block(4, whole, size, start, MPI_DOUBLE);
        place[c] = 0;
        length[c] = 1;
    }
    MPI_Type_create_struct(cells, length, place, cell, &file);
    int outer[4] = {own[0] + 2 * ghost, own[1] + 2 * ghost, own[2] + 2 * ghost, 5};
    int in[4] = {own[0], own[1], own[2], 5}, from[4] = {ghost, ghost, ghost, 0};
    MPI_Type_contiguous(cells, block(4, outer, in, from, MPI_DOUBLE), &inside);
    for (int t = 0; t < 4; t++)
        add(t * 8L * 5 * n * n * n, file, inside);
}

static void flash(void)
{
    int blocks = 20, inner[4] = {blocks, 8, 8, 8}, outer[4] = {blocks, 16, 16, 16};
    int from[4] = {0, 4, 4, 4};
    long part = blocks * 8L * 512;
    for (int v = 0; v < 24; v++)
        add((v * (long)ranks + rank) * part, bytes(part), block(4, outer, inner, from, MPI_DOUBLE));
}

static void s3d(void)
{
    static const int species[4] = {11, 3, 1, 1};
    int grid[3] = {0, 0, 0}, n = 32, whole[4], part[4], start[4];
    MPI_Offset at = 0;
    MPI_Dims_create(ranks, 3, grid);
    int mine[3] = {rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]};
    for (int v = 0; v < 4; v++) {
        whole[0] = part[0] = species[v];
        start[0] = 0;
        for (int d = 0; d < 3; d++) {
            whole[d + 1] = n * 2;
            part[d + 1] = n * 2 / grid[d];
            start[d + 1] = part[d + 1] * mine[d];
        }
        add(at, block(4, whole, part, start, MPI_DOUBLE),
            bytes(8L * part[0] * part[1] * part[2] * part[3]));
        at += 8L * whole[0] * whole[1] * whole[2] * whole[3];
    }
}

/* Of each variable of n elements, every rank has a few hundred runs of some elements. */
static void e3sm(void)
{
    MPI_Offset at = 0;
    for (int v = 0; v < 40; v++) {
        int length[400], place[400], runs = 200 + v * 5, run, total = 0, next = 0;
        unsigned long seed = 12345 + (unsigned long)v;
        for (run = 0; run < runs * ranks; run++) {
            seed = seed * 6364136223846793005UL + 1442695040888963407UL;
            int elements = 1 + (int)(seed >> 33) % 16;
            if (run % ranks == rank) {
                length[total] = elements;
                place[total++] = next;
            }
            next += elements;
        }
        MPI_Datatype type;
        long own = 0;
        for (run = 0; run < total; run++)
            own += length[run];
        MPI_Type_indexed(total, length, place, MPI_DOUBLE, &type);
        add(at, type, bytes(8 * own));
        at += 8L * next;
    }
}

static void hacc(void)
{
    static const int of[9] = {4, 4, 4, 4, 4, 4, 4, 8, 2};
    long particles = 50000;
    MPI_Offset at = 0;
    for (int v = 0; v < 9; v++) {
        add(at + rank * particles * of[v], bytes(particles * of[v]), bytes(particles * of[v]));
        at += ranks * particles * of[v];
    }
}

static void coll_perf(void)
{
    int grid[3] = {0, 0, 0}, whole[3], part[3], start[3], n = 128;
    MPI_Dims_create(ranks, 3, grid);
    int mine[3] = {rank / (grid[1] * grid[2]), rank / grid[2] % grid[1], rank % grid[2]};
    for (int d = 0; d < 3; d++) {
        whole[d] = n;
        part[d] = n / grid[d];
        start[d] = part[d] * mine[d];
    }
    add(0, block(3, whole, part, start, MPI_INT), bytes(4L * part[0] * part[1] * part[2]));
}

static void noncontig(void)
{
    MPI_Datatype file, apart;
    int elements = 1 << 16;
    MPI_Type_vector(elements, 4, 4 * ranks, MPI_INT, &file);
    MPI_Type_vector(elements, 4, 8, MPI_INT, &apart);
    add(rank * 16L, file, apart);
}

static void records(long size, int n)
{
    for (int i = 0; i < n; i++)
        add((i * (long)ranks + rank) * size, bytes(size), bytes(size));
}

static void make(const char *pattern)
{
    if (is(pattern, "tiles") || is(pattern, "overlap"))
        tiles(is(pattern, "overlap") ? 4 : 0);
    else if (is(pattern, "interleave") || is(pattern, "append"))
        records(is(pattern, "append") ? 4096 : 65536, is(pattern, "append") ? 256 : 64);
    else if (is(pattern, "hpio"))
        hpio();
    else if (is(pattern, "btio"))
        btio();
    else if (is(pattern, "flash"))
        flash();
    else if (is(pattern, "s3d"))
        s3d();
    else if (is(pattern, "e3sm"))
        e3sm();
    else if (is(pattern, "hacc"))
        hacc();
    else if (is(pattern, "coll_perf") || is(pattern, "halves"))
        coll_perf();
    else if (is(pattern, "noncontig"))
        noncontig();
}

/* ---- moving ---- */

static double pass(const char *path, int writes)
{
    MPI_File f;
    MPI_Barrier(MPI_COMM_WORLD);
    double began = MPI_Wtime(), mine, all;
    if (MPI_File_open(group, path, writes ? MPI_MODE_CREATE | MPI_MODE_RDWR : MPI_MODE_RDONLY,
                      MPI_INFO_NULL, &f))
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int i = 0; i < steps; i++) {
        struct step *s = &step[i];
        MPI_File_set_view(f, s->displacement, MPI_BYTE, s->view, "native", MPI_INFO_NULL);
        if (writes)
            MPI_File_write_all(f, memory + s->at, 1, s->memory, MPI_STATUS_IGNORE);
        else
            MPI_File_read_all(f, memory + s->at, 1, s->memory, MPI_STATUS_IGNORE);
    }
    MPI_File_close(&f);
    mine = MPI_Wtime() - began;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

/* What ranks share has to be the same of both: it goes by the place in the file, where it is all
 * one byte. */
static void fill(int round)
{
    for (long i = 0; i < room; i++)
        memory[i] = shares ? (char)(round + 1) : (char)(i * 7 + i / 251 + rank * 31 + round * 13);
}

static int differs(const struct step *s)
{
    int n;
    MPI_Type_size(s->memory, &n);
    char *a = malloc((size_t)n), *b = malloc((size_t)n);
    int at = 0, bt = 0;
    MPI_Pack(memory + s->at, 1, s->memory, a, n, &at, MPI_COMM_SELF);
    MPI_Pack(expected + s->at, 1, s->memory, b, n, &bt, MPI_COMM_SELF);
    int differ = memcmp(a, b, (size_t)n);
    free(a);
    free(b);
    return differ;
}

static void compare(void)
{
    for (int i = 0; i < steps; i++)
        if (differs(&step[i])) {
            fprintf(stderr, "rank %d: step %d: what is read is not what was written\n", rank, i);
            MPI_Abort(MPI_COMM_WORLD, 1);
        }
}

static double all_bytes(void)
{
    double mine = 0, all;
    for (int i = 0; i < steps; i++) {
        int n;
        MPI_Type_size(step[i].memory, &n);
        mine += n;
    }
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

/* Each half has its own file then. */
static void part_ways(const char **path)
{
    static char own[4096];
    int half = rank * 2 / ranks;
    snprintf(own, sizeof own, "%s.%d", *path, half);
    *path = own;
    MPI_Comm_split(MPI_COMM_WORLD, half, rank, &group);
    MPI_Comm_rank(group, &rank);
    MPI_Comm_size(group, &ranks);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4)
        MPI_Abort(MPI_COMM_WORLD, 2);
    const char *path = argv[1];
    int first = rank == 0;
    if (is(argv[2], "halves"))
        part_ways(&path);
    make(argv[2]);
    if (!steps)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memory = calloc((size_t)room, 1);
    expected = malloc((size_t)room);
    double moved = all_bytes();
    for (int round = 0; round < atoi(argv[3]); round++) {
        fill(round);
        memcpy(expected, memory, (size_t)room);
        double wrote = pass(path, 1);
        memset(memory, 0, (size_t)room);
        double got = pass(path, 0);
        compare();
        if (first)
            printf("{\"round\": %d, \"calls\": %d, \"bytes\": %.0f, \"write\": %.6f, "
                   "\"read\": %.6f}\n",
                   round, steps, moved, wrote, got);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        unlink(path);
    MPI_Finalize();
    return 0;
}
