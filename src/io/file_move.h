/* What the ranks have agreed on is moved: by the transport that a plan says; or it is moved
 * already; or few bytes are carried to rank 0 as the ranks meet (move/carry.h). */
#ifndef BRG_FILE_MOVE_H
#define BRG_FILE_MOVE_H

#include "io/file_early.h"
#include "move/carry.h"

/* Collective, and agreed on: 0, or the file's failure. `early`: the values of the meeting. */
int file_move(brg_file *f, enum file_action action, const struct io_request *request,
              const int64_t *early, struct io_extent extent);

/* Every rank has moved its bytes before they met. */
void file_move_nothing(brg_file *f, enum file_action action, const struct io_extent *extent);

/* Before each meeting of a file: what carry_put says of what this rank writes. When the ranks meet:
 * whether it is carried, of the least that they said; the same everywhere. Then, when carry_bring
 * was called: it is written. What fails on rank 0, the next meeting tells. */
enum carry_load file_carry_put(brg_file *f, enum file_action action,
                               const struct io_request *request);
int file_is_carried(const brg_file *f, enum carry_load load, const struct io_extent *extent);
int file_move_carried(brg_file *f, const struct io_request *request,
                      const struct io_extent *extent);

/* The same of what is read by rank 0 for all: whether it is, in the meeting, and then. */
int file_is_spread(const brg_file *f, const struct io_extent *extent);
int file_spread(brg_file *f, const struct io_extent *extent);
int file_take_spread(brg_file *f, const struct io_request *request, const struct io_extent *extent);

#endif
