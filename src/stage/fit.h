/* Fitting an image into the memory that a node gives it: which files stay on the file system.
 *
 * The index is always kept whole, so look-ups are answered for every path; a file that is left out
 * loses only its contents, and is opened where it lies. Files are kept in this order, each class
 * from small to large, as long as there is room:
 *   1  Brigade's own parts (without them there is no job: if they do not fit, that is an error)
 *   2  what the trial used
 *   3  sources whose byte code is kept too (they are read for a traceback only)
 *   4  what the trial never touched
 * Opening a file costs the file system about the same whatever its size, and node memory in
 * proportion to it: small ones save most for each byte. So large data goes first.
 *
 * What must stay true: pure and deterministic; the head stays one that brg_head_check accepts. Its
 * id becomes another, because it answers differently: two staged folders of one image that hold
 * different files never meet under one name.
 */
#ifndef BRG_STAGE_FIT_H
#define BRG_STAGE_FIT_H

#include <stdint.h>

#include "brigade/error.h"
#include "image/format.h"

#define FIT_NAMES 5u
#define FIT_LEAST 0u /* as memory_bytes: what must be there, and no other contents */

struct fit {
    uint64_t whole_bytes;        /* what all of the image would take of a node's memory */
    uint64_t left_out_bytes;     /* of contents that stay on the file system */
    uint32_t left_out_files;     /* 0: everything fits, and the head is as it was */
    uint32_t largest[FIT_NAMES]; /* entries left out, the largest first; BRG_NONE: no more */
};

/* Leaves out of `head` (which has passed brg_head_check) what does not fit into memory_bytes, in
 * pages of page_bytes. 0, -ENOMEM, or -E2BIG if not even the index and Brigade's own parts fit.
 * With FIT_LEAST these are all that stays. */
int fit_memory(void *head, uint32_t page_bytes, uint64_t memory_bytes, struct fit *fit,
               struct brg_error *err);

#endif
