/* Files of parts: each rank that writes appends to a part of its own, and an index makes them one.
 *
 * In the folder .NAME.brg-ID.parts, until the file is published, beside part N:
 *   N          bytes, in the order in which they came
 *   N.log      struct parts_record for each stretch of them
 *   N.sums     one XXH3-64 (1 for 0) for each block of N
 * Publishing makes one index of all logs, in which a later call's bytes win. */
#ifndef BRG_IO_PARTS_H
#define BRG_IO_PARTS_H

#include <stdatomic.h>

#include <xxhash.h>

#include "store/parts_index.h"
#include "store/store.h"

#define PARTS_NAME 2048 /* bytes for the path of a part and a suffix */
#define PARTS_HELD (64u << 10)

struct parts_record {
    uint64_t offset, bytes; /* of the file */
    uint64_t at;            /* in the part */
    uint64_t sequence;      /* of the call */
};

/* One rank's part, while it is written. */
struct parts_writer {
    int data, log, sums;
    uint64_t at, logged, summed; /* bytes in each */
    uint64_t block_bytes;
    uint32_t n_records, n_sums;
    struct parts_record record[1024];
    uint64_t sum[64];
    /* the last bytes, which are not in the file yet: small pieces would be a system call each, and
     * on a network file system a journey */
    uint32_t n_held;
    char held[PARTS_HELD];
    XXH3_state_t stream; /* of the block that is not full */
};

void parts_name(char name[PARTS_NAME], const char *folder, uint64_t number, const char *suffix);

/* Makes the files. 0 or -errno. */
int parts_writer_open(struct parts_writer *writer, const char *folder, uint32_t number,
                      unsigned mode, uint64_t block_bytes);
void parts_writer_close(struct parts_writer *writer);

/* Each 0 or -errno, which may be that of bytes put before: *failed is the byte of the file. */
int parts_writer_put(struct parts_writer *writer, const void *buf, size_t bytes, uint64_t offset,
                     uint64_t sequence, uint64_t *failed);
/* What was put is in the file, or failed. */
int parts_writer_end_call(struct parts_writer *writer, uint64_t *failed);
/* The last call but close. Closes the files: only then are they sure to be seen on other nodes. */
int parts_writer_flush(struct parts_writer *writer, int sync);

/* Rank 0: writes the index of the parts in `folder` to `fd`, an empty file. memory bounds the room
 * for extents. Then logs and sums are of no use any more. */
int parts_make_index(const char *folder, int fd, struct parts_head *head, size_t memory);

/* Puts all extents of all logs in order, without overlap. Pure but for reading the logs. */
struct parts_logs {
    const char *folder;
    const uint64_t *number; /* of each part */
    uint32_t n;
};
int parts_resolve(const struct parts_logs *logs, uint64_t size, size_t memory,
                  struct parts_build *build);

/* Removes a folder of parts and all in it that could be one. 0, or -errno if it is still there. */
int parts_remove(const char *folder);

/* One that is being read; parts are opened when they are used. */
struct parts_reader {
    struct parts_index index;
    char folder[STORE_PATH + PARTS_FOLDER];
    int fd; /* of part number `open`, or -1 */
    uint32_t open;
    struct parts_part part;
};

int parts_reader_open(struct parts_reader *reader, const char *path, struct brg_error *err);
void parts_reader_close(struct parts_reader *reader);
/* Reads what there is of [offset, offset + bytes) of the file; holes are zeros. With verify, blocks
 * that were read are compared. 0 with *got; or -errno with *err. */
int parts_read(struct parts_reader *reader, void *buf, size_t bytes, uint64_t offset, int verify,
               size_t *got, struct brg_error *err);
/* Opens a part, for reading and for checking it. 0 or -errno with *err. */
int parts_reader_use(struct parts_reader *reader, uint32_t part, struct brg_error *err);
/* Compares block b of the part in use. 0; -EBADMSG; -errno: *err names the part. */
int parts_check_block(struct parts_reader *reader, uint64_t b, struct brg_error *err);

#endif
