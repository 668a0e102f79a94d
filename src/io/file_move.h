/* What the ranks have agreed on is moved: by the transport that a plan says; or it is moved
 * already; or few bytes are carried to rank 0 as the ranks meet (move/carry.h). */
#ifndef BRG_FILE_MOVE_H
#define BRG_FILE_MOVE_H

#include "io/file_early.h"

/* Collective, and agreed on: 0, or the file's failure. `early`: the values of the meeting. */
int file_move(brg_file *f, enum file_action action, const struct io_request *request,
              const int64_t *early, struct io_extent extent);

/* Every rank has moved its bytes before they met. */
void file_move_nothing(brg_file *f, enum file_action action, const struct io_extent *extent);

/* Before each meeting of a file: 1, or 0 where what this rank writes cannot be carried. Then, if
 * all could, and carry_bring was called as the ranks met. What fails on rank 0, the next meeting
 * tells. */
int file_carry_put(brg_file *f, enum file_action action, const struct io_request *request);
int file_move_carried(brg_file *f, const struct io_request *request,
                      const struct io_extent *extent);

#endif
