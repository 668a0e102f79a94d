/* Calls of one meeting: a rank that has one run of bytes, or reads such as lie far apart, moves
 * them before it meets the others, and says so. If nobody has anything left to move, and no two
 * ranks wrote the same byte, the call is over when they have met. Else it begins then: what was
 * written is written again, in its order.
 *
 * Writing so is for the ranks of one node, where every rank's claims are at hand. */
#ifndef BRG_FILE_EARLY_H
#define BRG_FILE_EARLY_H

#include "io/file.h"

/* What a rank says of it, among the values of a meeting. */
enum early_value {
    EARLY_DONE, /* 1: this rank has nothing left to move; after the meeting: nor has any */
    EARLY_LOW,  /* what it wrote, and the blocks of checksums these bytes and its stream are in */
    EARLY_HIGH,
    EARLY_FROM,
    EARLY_UNTIL,
    EARLY_FAILED, /* its rank, if it failed in that, or after the last call; else INT64_MAX */
    EARLY_LEFT,   /* reading: what it has left */
    EARLY_VALUES = EARLY_LEFT + LEFT_VALUES
};

/* Before the meeting. `refused`: this rank refuses what it was asked. */
void file_early_begin(brg_file *f, enum file_action action, const struct io_request *request,
                      int refused);
void file_early_say(const brg_file *f, int64_t *v);

/* `alone` of the meeting, whose values begin with these. */
int file_early_judge(void *file, int64_t *least);

/* Reading, when the ranks have met: 1 if each reads what it has left by itself, and has done so;
 * *rc is what they agreed on. Collective, the same everywhere. */
int file_early_scattered(brg_file *f, struct io_extent *extent, const int64_t *least, int *rc);

enum file_early_end {
    FILE_EARLY_KEEP,  /* the call is over, and the file has bytes up to `high` */
    FILE_EARLY_AGAIN, /* it begins now, or another does first */
    FILE_EARLY_DOUBT  /* somebody refused it */
};
void file_early_end(brg_file *f, enum file_early_end end, uint64_t high);

/* Then, of a call that is over: short writes that lie next to each other go to the disk, while the
 * ranks write more. */
void file_early_start(brg_file *f, const struct io_extent *extent);

#endif
