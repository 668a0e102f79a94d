/* What the image answers for a path, with the job's changes and counters taken into account.
 *
 * Freestanding, async-signal-safe, thread-safe, no allocation, never touches errno. Every miss is
 * counted here or by look_miss(), every answer by look_hit(); a caller that gets LOOK_HIT or
 * LOOK_MISSING must call exactly one of the two. Call only if v->mode is VIEW_SERVE.
 */
#ifndef BRG_VIEW_LOOK_H
#define BRG_VIEW_LOOK_H

#include "view/view.h"

enum look {
    LOOK_PASS = 0, /* the real call, as it is (if that is a miss, it has been counted) */
    LOOK_HIT,      /* exists: see `entry` */
    LOOK_MISSING,  /* does not exist: see `err` */
    LOOK_ELSEWHERE /* a link that the image knows leads to `path`, outside what it covers */
};

/* Signal handlers look up, too, on stacks of 8 KiB, of which the kernel takes up to 3.5 for the
 * registers of AVX-512. What does not fit here, with the staged folder in front of it, is left to
 * the kernel. */
enum {
    LOOK_ROOM = 1024
};

struct look_result {
    const struct brg_entry *entry; /* LOOK_HIT */
    uint32_t number;               /* of entry */
    int err;
    char path[LOOK_ROOM]; /* LOOK_ELSEWHERE, or room for look_staged() */
};

/* Looks up `path` relative to `dirfd` (AT_FDCWD, or a descriptor); `follow` as in
 * brg_index_resolve(). `op` names the call in the list of misses. */
enum look look_up(const struct view *v, const char *op, int dirfd, const char *path, int follow,
                  struct look_result *r);

/* The path of the staged copy of r->entry, made in r->path; NULL if the entry has no content. */
const char *look_staged(const struct view *v, struct look_result *r);

/* Counts a look-up that was answered. */
void look_hit(const struct view *v);

/* Counts a look-up of `path` (may be relative) that goes to the real file system although it is
 * under a covered root. In strict mode a cause that is the image's or the stage's fault ends the
 * process with a message and status 125. */
void look_miss(const struct view *v, enum brg_miss_cause cause, const char *op, int dirfd,
               const char *path);

/* Whether an absolute path, whose bytes need not be those of a covered root, can lead under one. */
int look_may_lead(const struct view *v, const char *path);

/* Bits of brg_state.dirty_any. */
enum {
    LOOK_CHANGED = 1,
    LOOK_MOVED = 2, /* a directory or a link changed: other paths lead elsewhere now */
    LOOK_UNSEEN = 4 /* a program runs whose writing nobody notes: the user's own may change */
};

/* Notes that a program is about to be started whose calls do not come by here. */
void look_unseen(const struct view *v);

/* Notes in the job's state that `path` has been written, made, renamed, linked or removed:
 * `follow` for calls that act on what a link at the end points to. */
void look_changed(const struct view *v, int dirfd, const char *path, int follow);

/* The same for what a descriptor refers to: exact, whatever way the path took. Returns whether
 * that lies under a covered root. */
int look_changed_fd(const struct view *v, int fd);

/* Whether a call on `path` that is left to the kernel concerns a covered root. */
int look_covers(const struct view *v, int dirfd, const char *path, int follow);

/* Metadata of an entry as stat gives it on this node. */
struct stat;
void look_stat(const struct view *v, const struct brg_entry *e, struct stat *st);

/* Nanoseconds since 1970, as the index has them. */
struct timespec;
struct timespec look_time(int64_t ns);

/* Whether whoever asks has the permissions `mode` (R_OK, X_OK): without asking who asks. */
int look_permits_anyone(const struct brg_entry *e, int mode);

/* Whether the user has the permissions `mode` (R_OK, X_OK, F_OK) by owner, group and mode bits;
 * 0 also when only the file system itself can tell. */
int look_permits(const struct brg_entry *e, int mode);

#endif
