/* A view of a file, as MPI has them: which of its bytes are seen, and in which order. Pure.
 *
 * From `displacement` on, the file is tiled with copies of the filetype; what it has bytes of is
 * seen, the rest are holes. A byte of what is seen has a *position*, counted from 0 without holes,
 * and an *offset* in the file. Both rise together, so that either leads to the other. */
#ifndef BRG_TYPE_FILE_VIEW_H
#define BRG_TYPE_FILE_VIEW_H

#include "type/type.h"

struct file_view {
    int64_t displacement;
    uint64_t etype_bytes; /* positions are given to the user in etypes */
    struct placed data;   /* all tiles that begin and end below 2^63 */
};

/* Returns 0; or, with the rule that is broken in *err,
 *   -EINVAL     what MPI forbids: a negative displacement, an etype without bytes, a filetype that
 *               is not made of whole etypes, places that are negative or that fall
 *   -ENOTSUP    what MPI allows for reading alone, or that nobody needs: bytes that are seen twice,
 *               tiles that lie in each other
 *   -EOVERFLOW  not one tile ends below 2^63
 *   -ENOMEM
 * The holes' sizes are not looked at: MPI wants multiples of the etype's extent, but no rule here
 * rests on it, and other implementations take any. A filetype without bytes sees nothing. */
int file_view_create(struct file_view *view, int64_t displacement, const struct type *etype,
                     const struct type *filetype, struct brg_error *err);
void file_view_destroy(struct file_view *view);

/* Where byte `position` of what is seen lies in the file; -1: past the last one. */
int64_t file_view_offset(const struct file_view *view, uint64_t position);

/* How many bytes of what is seen lie before `offset` in the file. */
uint64_t file_view_position(const struct file_view *view, int64_t offset);

/* The end of a file of `bytes`, in etypes (MPI_SEEK_END): the first etype that begins at the end
 * or after it. */
uint64_t file_view_end(const struct file_view *view, int64_t bytes);

#endif
