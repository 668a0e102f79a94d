/* stat in all its forms, and access. */
#include "view/hooks.h"
#include "base/sys.h"
#include "base/text.h"

#include <sys/sysmacros.h>

#include "base/real_stat.h"

/* What a look-up without a hit means for a call that returns -1 on failure: whether it is answered,
 * with its result. Otherwise *path is where to ask. */
static int answered_no_hit(const struct view *v, enum look found, const struct look_result *r,
                           const char **path, int *result)
{
    if (found == LOOK_PASS)
        return 0;
    look_hit(v);
    if (found == LOOK_ELSEWHERE) {
        *path = r->path;
        return 0;
    }
    errno = r->err;
    *result = -1;
    return 1;
}

/* The same of a call that wants metadata. */
static int answered(const struct view *v, const char *op, int dirfd, const char **path, int follow,
                    struct stat *st, struct look_result *r, int *result)
{
    enum look found = look_up(v, op, dirfd, *path, follow, r);
    if (found != LOOK_HIT)
        return answered_no_hit(v, found, r, path, result);
    look_hit(v);
    look_stat(v, r->entry, st);
    *result = 0;
    return 1;
}

/* The entry of a staged file by its path in the staged tree, or NULL. */
static const struct brg_entry *entry_of(const struct view *v, const char *original)
{
    uint32_t number = brg_index_find(v->index, original, strlen(original));
    return number == BRG_NONE ? NULL : &brg_entries(v->index)[number];
}

/* The entry of a staged file that `fd` is open on, given what fstat says of it, or NULL. */
static const struct brg_entry *staged_entry(const struct view *v, int fd, uint64_t dev, mode_t mode)
{
    char path[LOOK_ROOM];
    int staged;
    if (dev != v->stage_dev || !S_ISREG(mode) ||
        view_fd_path(v, fd, path, sizeof path, &staged) < 0 || !staged)
        return NULL;
    return entry_of(v, path);
}

/* After a real stat by descriptor: a staged file has its original's metadata. */
static void restore_fd(const struct view *v, int fd, struct stat *st, int result)
{
    if (!serves(v) || result != 0)
        return;
    const struct brg_entry *e = staged_entry(v, fd, st->st_dev, st->st_mode);
    if (e)
        look_stat(v, e, st);
}

/* The entry of a staged file that `path` has led to, by way of /proc or /dev (exe, fd, stdin). */
static const struct brg_entry *entry_met(const struct view *v, int dirfd, const char *path,
                                         uint64_t dev, mode_t mode)
{
    char original[LOOK_ROOM];
    int staged = 0;
    if (dev != v->stage_dev || !S_ISREG(mode) ||
        view_end_path(v, dirfd, path, original, sizeof original, &staged) < 0 || !staged)
        return NULL;
    return entry_of(v, original);
}

/* After a real stat by path: recorded, or, if it has met a staged file, as its original's. */
static void after(const struct view *v, const char *kind, int dirfd, const char *path,
                  struct stat *st, int result)
{
    if (!v)
        return;
    if (v->mode == VIEW_RECORD) {
        record_lookup(v, kind, error_of(result), dirfd, path, "");
    } else if (result == 0) {
        const struct brg_entry *e = entry_met(v, dirfd, path, st->st_dev, st->st_mode);
        if (e)
            look_stat(v, e, st);
    }
}

#define STAT_BODY(kind, dirfd, follow, call)                                           \
    struct look_result r;                                                              \
    const struct view *v = hook_view();                                                \
    int result;                                                                        \
    if (serves(v) && path && answered(v, kind, dirfd, &path, follow, st, &r, &result)) \
        return result;                                                                 \
    result = call;                                                                     \
    after(v, kind, dirfd, path, st, result);                                           \
    return result

int hook_stat(const char *path, struct stat *st)
{
    STAT_BODY("stat", AT_FDCWD, 1, real_stat(path, st));
}

int hook_lstat(const char *path, struct stat *st)
{
    STAT_BODY("lstat", AT_FDCWD, 0, real_lstat(path, st));
}

int hook___xstat(int version, const char *path, struct stat *st)
{
    STAT_BODY("stat", AT_FDCWD, 1, REAL(__xstat)(version, path, st));
}

int hook___lxstat(int version, const char *path, struct stat *st)
{
    STAT_BODY("lstat", AT_FDCWD, 0, REAL(__lxstat)(version, path, st));
}

int hook_fstat(int fd, struct stat *st)
{
    int result = real_fstat(fd, st);
    restore_fd(hook_view(), fd, st, result);
    return result;
}

int hook___fxstat(int version, int fd, struct stat *st)
{
    int result = REAL(__fxstat)(version, fd, st);
    restore_fd(hook_view(), fd, st, result);
    return result;
}

static int at_path(int dirfd, const char *path, struct stat *st, int flags)
{
    STAT_BODY(flags & AT_SYMLINK_NOFOLLOW ? "lstat" : "stat", dirfd, !(flags & AT_SYMLINK_NOFOLLOW),
              real_fstatat(dirfd, path, st, flags));
}

int hook_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
    if (path && path[0])
        return at_path(dirfd, path, st, flags);
    int result = real_fstatat(dirfd, path, st, flags);
    restore_fd(hook_view(), dirfd, st, result);
    return result;
}

int hook___fxstatat(int version, int dirfd, const char *path, struct stat *st, int flags)
{
    if (version == 0 || version == STAT_VERSION)
        return hook_fstatat(dirfd, path, st, flags);
    return REAL(__fxstatat)(version, dirfd, path, st, flags);
}

/* ---- statx ---- */

static struct statx_timestamp statx_time(struct timespec t)
{
    struct statx_timestamp out = {.tv_sec = t.tv_sec, .tv_nsec = (uint32_t)t.tv_nsec};
    return out;
}

static void fill_statx(const struct view *v, const struct brg_entry *e, struct statx *x)
{
    struct stat st;
    look_stat(v, e, &st);
    memset(x, 0, sizeof *x);
    x->stx_mask = STATX_BASIC_STATS;
    x->stx_blksize = (uint32_t)st.st_blksize;
    x->stx_nlink = (uint32_t)st.st_nlink;
    x->stx_uid = st.st_uid;
    x->stx_gid = st.st_gid;
    x->stx_mode = (uint16_t)st.st_mode;
    x->stx_ino = st.st_ino;
    x->stx_size = (uint64_t)st.st_size;
    x->stx_blocks = (uint64_t)st.st_blocks;
    x->stx_atime = statx_time(st.st_atim);
    x->stx_mtime = statx_time(st.st_mtim);
    x->stx_ctime = statx_time(st.st_ctim);
    x->stx_rdev_major = major(st.st_rdev);
    x->stx_rdev_minor = minor(st.st_rdev);
    x->stx_dev_major = major(st.st_dev);
    x->stx_dev_minor = minor(st.st_dev);
}

static uint64_t device_of(const struct statx *x)
{
    return makedev(x->stx_dev_major, x->stx_dev_minor);
}

static int statx_path(const struct view *v, int dirfd, const char *path, int flags,
                      unsigned int mask, struct statx *stx)
{
    struct look_result r;
    const char *kind = flags & AT_SYMLINK_NOFOLLOW ? "lstat" : "stat";
    int found = LOOK_PASS;
    if (serves(v))
        found = look_up(v, kind, dirfd, path, !(flags & AT_SYMLINK_NOFOLLOW), &r);
    if (found == LOOK_HIT && ((mask & ~STATX_BASIC_STATS) || (flags & AT_STATX_FORCE_SYNC))) {
        look_miss(v, BRG_MISS_UNSUPPORTED, "statx", dirfd, path); /* birth time and the like */
        found = LOOK_PASS;
    }
    if (found != LOOK_PASS)
        look_hit(v);
    if (found == LOOK_HIT) {
        fill_statx(v, r.entry, stx);
        return 0;
    }
    if (found == LOOK_MISSING) {
        errno = r.err;
        return -1;
    }
    if (found == LOOK_ELSEWHERE)
        path = r.path;
    int result = REAL(statx)(dirfd, path, flags, mask, stx);
    if (v && v->mode == VIEW_RECORD) {
        record_lookup(v, kind, error_of(result), dirfd, path, "");
    } else if (v && result == 0) {
        const struct brg_entry *e = entry_met(v, dirfd, path, device_of(stx), stx->stx_mode);
        if (e)
            fill_statx(v, e, stx);
    }
    return result;
}

int hook_statx(int dirfd, const char *path, int flags, unsigned int mask, struct statx *stx)
{
    const struct view *v = hook_view();
    if (path && path[0])
        return statx_path(v, dirfd, path, flags, mask, stx);
    int result = REAL(statx)(dirfd, path, flags, mask, stx);
    if (result == 0 && serves(v)) {
        const struct brg_entry *e = staged_entry(v, dirfd, device_of(stx), stx->stx_mode);
        if (e)
            fill_statx(v, e, stx);
    }
    return result;
}

/* ---- access ---- */

static int same_ids(void)
{
    return sys_call(SYS_getuid, 0, 0, 0, 0, 0, 0) == sys_call(SYS_geteuid, 0, 0, 0, 0, 0, 0) &&
           sys_call(SYS_getgid, 0, 0, 0, 0, 0, 0) == sys_call(SYS_getegid, 0, 0, 0, 0, 0, 0);
}

/* What the mode bits grant is granted; anything else (writing, access lists, a file system that
 * is read-only or trusts nobody) only the file system can tell. */
static int access_answered(const struct view *v, int dirfd, const char **path, int mode, int follow,
                           int effective, struct look_result *r, int *result)
{
    struct stat st;
    if (mode == F_OK)
        return answered(v, "access", dirfd, path, follow, &st, r, result);
    enum look found = look_up(v, "access", dirfd, *path, follow, r);
    if (found != LOOK_HIT)
        return answered_no_hit(v, found, r, path, result);
    if (look_permits_anyone(r->entry, mode) ||
        ((effective || same_ids()) && look_permits(r->entry, mode))) {
        look_hit(v);
        *result = 0;
        return 1;
    }
    if ((mode & X_OK) && r->entry->kind == BRG_FILE && !(r->entry->mode & 0111)) {
        look_hit(v); /* no bit at all: neither root nor an access list has it */
        errno = EACCES;
        *result = -1;
        return 1;
    }
    look_miss(v, BRG_MISS_UNSUPPORTED, "access", dirfd, *path);
    return 0;
}

static void record_access(const struct view *v, int result, int dirfd, const char *path, int mode)
{
    char extra[24];
    if (!v)
        return;
    struct text t = text_in(extra, sizeof extra);
    text_signed(&t, mode);
    record_lookup(v, "access", error_of(result), dirfd, path, extra);
}

#define ACCESS_BODY(dirfd, follow, effective, call)                             \
    struct look_result r;                                                       \
    const struct view *v = hook_view();                                         \
    int result;                                                                 \
    if (serves(v) && path &&                                                    \
        access_answered(v, dirfd, &path, mode, follow, effective, &r, &result)) \
        return result;                                                          \
    result = call;                                                              \
    record_access(v, result, dirfd, path, mode);                                \
    return result

int hook_access(const char *path, int mode)
{
    ACCESS_BODY(AT_FDCWD, 1, 0, REAL(access)(path, mode));
}

int hook_euidaccess(const char *path, int mode)
{
    ACCESS_BODY(AT_FDCWD, 1, 1, REAL(euidaccess)(path, mode));
}

int hook_faccessat(int dirfd, const char *path, int mode, int flags)
{
    ACCESS_BODY(dirfd, !(flags & AT_SYMLINK_NOFOLLOW), flags & AT_EACCESS,
                REAL(faccessat)(dirfd, path, mode, flags));
}

#define BRG_SECTION_STAT
#define BRG_ALIAS BRG_DEFINE_ALIAS
#include "view/hooks.def"
