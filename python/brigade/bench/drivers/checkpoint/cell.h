/* One cell of the checkpoint benchmark: which bytes every rank has, and how long moving them took.
 *
 * A cell's file is `calls` arrays, one after another, each of `shape` = grid * count elements; the
 * ranks form a grid, and each has the block at its place. Or, with `header`: each rank has a region
 * of header bytes and then count[0] bytes, the regions one after another. Either way every byte of
 * the file is written once, and its contents follow from its offset. All sizes are multiples of 8.
 */
#ifndef CHECKPOINT_CELL_H
#define CHECKPOINT_CELL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"

#define MAX_DIMS 4
#define WHY 512

struct cell {
    int id;
    char back_end[32], hints[512], path[1024];
    int ndims, calls;
    uint64_t element, header, seed;
    uint64_t grid[MAX_DIMS], count[MAX_DIMS];
    int sync, read, check;
    int publish; /* written under another name, and renamed when it is on the disk */
    int rank, size;
    MPI_Comm comm;
};

/* What a rank has in one call: a block of an array that begins at `offset` of the file. */
struct block {
    int ndims;
    uint64_t element, offset, bytes;
    uint64_t shape[MAX_DIMS], start[MAX_DIMS], count[MAX_DIMS];
};

/* Phases of a write or read. */
enum {
    OPEN,
    MOVE,
    CLOSE,
    PHASES
};

struct outcome {
    double begin, last;
    double seconds[PHASES];
    uint64_t base;   /* where the file's bytes begin in a file of the back end's own format */
    char note[2048]; /* what the back end says about itself */
    char why[WHY];   /* what failed */
};

struct back_end {
    const char *name;
    int own_files; /* a file for each rank: PATH.RANK */
    /* 0, or else outcome->why says what failed. buf holds the blocks of all calls in turn. */
    int (*write)(const struct cell *cell, const char *buf, struct outcome *outcome);
    int (*read)(const struct cell *cell, char *buf, struct outcome *outcome);
};

extern const struct back_end back_end_brigade, back_end_onesided, back_end_mpiio,
    back_end_posix_shared, back_end_posix_own, back_end_hdf5, back_end_adios2;

/* A cell of the words "key=value key=value", all but where its file is; 0, or the word that is
 * wrong. */
const char *cell_parse(struct cell *cell, char *line);

int cell_calls(const struct cell *cell);
uint64_t cell_bytes(const struct cell *cell); /* of this rank */
uint64_t cell_file_bytes(const struct cell *cell);

/* This rank's block of one call, 0 <= call < cell_calls. */
void cell_block(const struct cell *cell, int call, struct block *block);

/* Calls run(context, offset in the file, offset in the block, bytes) for all runs of a block, in
 * order; ends early with what run returns, if not 0. */
int block_walk(const struct block *block,
               int (*run)(void *context, uint64_t offset, uint64_t at, uint64_t bytes),
               void *context);

/* Puts what belongs there into this rank's bytes. */
void cell_fill(const struct cell *cell, char *buf);

/* Offset of the first byte of the file that is not what it should be, or -1. */
int64_t cell_wrong(const struct cell *cell, const char *buf);

/* The same for bytes [offset, offset + bytes) of the file. */
int64_t bytes_wrong(const struct cell *cell, const char *buf, uint64_t offset, uint64_t bytes);

/* The phase that ends now took until now. */
void outcome_lap(struct outcome *outcome, int phase);

/* Says what failed, like printf, and returns -1. */
__attribute__((format(printf, 2, 3))) int outcome_fail(struct outcome *outcome, const char *format,
                                                       ...);

#endif
