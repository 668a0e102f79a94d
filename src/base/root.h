/* Which files a process sees under their paths: its root folder and its mounts.
 *
 * What is staged are a node's files. A process in a container, or in another root, finds others
 * under the same paths: it is away, and nothing is answered, recorded or injected there. What it
 * sees is told by three numbers; a mount namespace of its own is enough to be away, because what
 * it mounts there is not looked at.
 *
 * Freestanding, safe between vfork and exec; two system calls, no request to any file system.
 */
#ifndef BRG_BASE_ROOT_H
#define BRG_BASE_ROOT_H

#include <stddef.h>
#include <stdint.h>

/* Set by brigade-rank to what it sees itself, as root_words() has it. */
#define BRG_ROOT_VARIABLE "BRIGADE_ROOT"

enum {
    ROOT_WORDS = 64
};

struct brg_root {
    uint64_t mounts;   /* inode of the mount namespace; 0: not known */
    uint64_t dev, ino; /* of "/" */
};

/* What this process sees. 0 or -errno (-ENOENT: without /proc). */
int root_here(struct brg_root *here);

int root_same(const struct brg_root *a, const struct brg_root *b);

/* "MOUNTS.DEV.INO", each decimal; `buf` holds ROOT_WORDS. */
void root_words(const struct brg_root *root, char *buf);

/* Whether this process sees something else than `words` say. Not, if they are NULL. */
int root_is_away(const char *words);

/* Name of a copy of the stager's /proc/self/mountinfo, beside a job's `state`. */
#define BRG_MOUNTS_NAME "mounts"

/* Leaves a copy of this process's mount table as a new file of that name. 0 or -errno. */
int root_leave_mounts(int dirfd, const char *name);

#endif
