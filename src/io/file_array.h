/* Named arrays of an open file: what all ranks must agree on, and when it is written.
 *
 * A definition costs no message by itself: arrays are laid out by the same arithmetic on every
 * rank, and compared when the ranks meet for FILE_DEFINE. Small arrays are kept until then (or
 * until they fill a fraction of a segment), and written in one call. */
#ifndef BRG_IO_FILE_ARRAY_H
#define BRG_IO_FILE_ARRAY_H

#include "io/array_index.h"
#include "io/array_table.h"
#include "io/file.h"

/* A small array's block, kept until the ranks meet. */
struct kept_block {
    size_t array;
    size_t at; /* in `bytes`: packed, in C order */
    uint64_t start[BRG_MAX_DIMS], count[BRG_MAX_DIMS];
};

struct file_arrays {
    struct array_table table;
    size_t agreed; /* arrays that all ranks have defined alike, and of which none is kept */
    size_t same;   /* arrays that all have defined alike, as a meeting told */
    size_t loaded; /* arrays that were there when the file was opened */
    struct brg_error damage; /* code != 0: why the index that is there cannot be used */
    struct kept_block *kept;
    size_t n_kept, kept_room;
    char *bytes;
    size_t n_bytes, bytes_room;
    uint64_t n_pieces;   /* of the file, that kept blocks are, or were */
    uint64_t kept_whole; /* bytes of the whole arrays that are kept: the same on every rank */
    int bringing;        /* this rank meets the others with all that it has kept */
    int changed;         /* this rank's arrays or attributes are not those of the index */
};

/* What rank 0 found at the beginning of the file. */
struct found_index {
    int kind; /* as array_header_unpack; 0: no arrays */
    struct array_header header;
    struct brg_error damage;
};

/* Rank 0, when it has opened the store, with *found zeros: looks for the index of a file of arrays.
 * A failure to read it is f->failure. */
void arrays_look(brg_file *f, struct found_index *found);
/* Collective, when all know what it found: reads that index. A damaged one is no failure here: only
 * calls that ask for arrays meet it. 0, or the agreed failure. */
int arrays_load(brg_file *f, const struct found_index *found);
void arrays_destroy(brg_file *f);

/* f->arrays->table, empty: arrays lie behind the first `from` bytes, with room for their index. */
void arrays_empty(brg_file *f, uint64_t from);

/* Makes f->arrays of a file that has no bytes yet: -EINVAL if it has, -ENOMEM; or the damage. */
int arrays_begin(brg_file *f, struct brg_error *err);
/* A call is refused that has made f->arrays: where nothing else has come of it, they are unmade, or
 * the file would count as one of arrays. */
void arrays_unmake(brg_file *f);

/* -EINVAL where bytes at offsets of the program's own would lie upon arrays. */
int arrays_forbid_bytes(const brg_file *f, struct brg_error *err);

/* Number of arrays that this rank has defined so far. */
int64_t arrays_defined(const brg_file *f);
/* A hash of all that this rank has defined, in its order. */
int64_t arrays_told(const brg_file *f);

/* Collective: all arrays that this rank has defined are agreed on, and those that were kept are
 * written. Local: whether it is so. */
int arrays_settle(brg_file *f, struct brg_error *err);
int arrays_are_settled(const brg_file *f);

/* In a meeting all ranks said the same of all that they have defined. `brought`: and each has
 * brought all that it had kept. */
void arrays_are_same(brg_file *f, int brought);

/* Local. Whether the bytes of arrays may be written before all have agreed on them: where they do
 * not, nothing of the file is ever published. */
int arrays_may_agree_later(const brg_file *f);

/* Collective, the ranks having met for FILE_DEFINE: compares the first `least` definitions, and
 * writes what was kept of them. `same`: in that meeting all ranks said the same of all that they
 * have defined. This rank came for `action`, the last one for `latest`. What fails is f->failure,
 * or, where a rank cannot write what it has kept, `refusal`: then it is still to be written. */
int arrays_agree(brg_file *f, enum file_action action, size_t least, int same,
                 enum file_action latest, struct brg_error *refusal);

/* Collective, in place of file_meet(FILE_COMMIT): all arrays are settled, all ranks have come to
 * commit, and the index is written, by rank 0: with what is kept where there are several nodes;
 * before they meet where nobody else's bytes are told apart from its own (one node); in both a file
 * that is not yet published, or else in a call when they have met. */
int arrays_commit(brg_file *f, struct brg_error *err);
/* Header and index, one behind the other in *buf, and where they belong. -E2BIG, -ENOMEM. */
int arrays_pack_index(brg_file *f, char **buf, brg_piece pieces[2], struct brg_error *err);

/* Kept blocks: file_array_kept.c. Whether an array of so many bytes is kept; whether it is time to
 * settle; keeping; writing (collective) those of arrays before `until`; whether this rank meets
 * the others with all that it has kept, if anything. */
int kept_is_for(const brg_file *f, uint64_t bytes);
int kept_full(const brg_file *f);
int kept_add(brg_file *f, size_t array, const uint64_t *start, const uint64_t *count,
             const int64_t *strides, const void *buf, struct brg_error *err);
int kept_write(brg_file *f, size_t until, struct brg_error *err);
int kept_is_brought(const brg_file *f);
/* Collective, where arrays may be agreed on later: writes all that is kept, and of rank 0 the index
 * as well, where this is the end. Whether all agree shows as they meet (arrays_are_same). */
int kept_bring(brg_file *f, int at_end, struct brg_error *err);
void kept_destroy(struct file_arrays *a);

/* The block of an array as a request of the file. */
int array_request(struct io_request *request, const struct io_array *array, const uint64_t *start,
                  const uint64_t *count, const int64_t *strides, const void *buf,
                  struct brg_error *err);

#endif
