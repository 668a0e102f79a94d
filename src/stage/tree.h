/* The files of a staged folder, made from blocks that arrive in any order.
 *
 * Directories, links and empty files are made first. A block's bytes then go into every file that
 * has some of them; a file gets its times when its last byte is there. Source files that were one
 * (same device and inode) become one again by hard links; others stay apart even if equal.
 *
 * tree_take_block may be called by several threads at once; everything else by one.
 * Calls return 0 or -errno with text in *err.
 */
#ifndef BRG_STAGE_TREE_H
#define BRG_STAGE_TREE_H

#include <stdatomic.h>
#include <stdint.h>

#include "brigade/error.h"
#include "image/format.h"

struct tree_file {
    uint32_t entry;
    uint32_t same_as;         /* file of which this is a hard link, or BRG_NONE */
    _Atomic uint64_t missing; /* bytes */
};

struct tree {
    const struct brg_index *index;
    uint32_t block_bytes;
    int root_fd;
    struct tree_file *files; /* of content c: first[c] .. first[c + 1] - 1 */
    uint32_t *first;
    _Atomic uint64_t written; /* bytes in files */
};

/* Makes `root` in staged_fd, and in it all that has no bytes. `head` has passed brg_head_check and
 * must outlive the tree. umask should be 0, or modes differ from the source's. */
int tree_create(struct tree *t, int staged_fd, const void *head, struct brg_error *err);

/* Writes the raw bytes of one block, each block once. */
int tree_take_block(struct tree *t, uint32_t block, const void *raw, size_t bytes,
                    struct brg_error *err);

/* After the last block: hard links, times of directories. -EBADMSG if a file lacks bytes. */
int tree_finish(struct tree *t, struct brg_error *err);

void tree_destroy(struct tree *t);

/* The text of a symbolic link as it must be inside the staged root, or -1 to leave the link out
 * (its target is not in the image). Pure. */
int tree_link_text(const struct brg_index *x, const struct brg_entry *link, char *out, size_t size);

#endif
