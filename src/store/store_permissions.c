/* Who may use the file that is there may use the one that takes its place, and nobody else.
 *
 * Bits of permission mean little without the group that they are for, and those of a file with an
 * access list are the most that the list allows to anybody in it. So owner, group and list are
 * taken over before the bits are; where the group or the list cannot be, what was the group's is
 * left only as far as everybody has it. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "store/store_inside.h"
#include "store/store_io.h"

#define ACCESS_LIST "system.posix_acl_access"
#define LIST_BYTES 4096 /* some 500 users and groups */

int store_may_use(const char *path, unsigned flags, struct brg_error *err)
{
    if (flags & BRG_READ && faccessat(AT_FDCWD, path, R_OK, AT_EACCESS))
        return store_failed(err, -errno, path, -1, "read");
    int denied = flags & BRG_WRITE && faccessat(AT_FDCWD, path, W_OK, AT_EACCESS);
    return denied ? store_failed(err, -errno, path, -1, "write") : 0;
}

int store_give(int fd, const struct store_token *token)
{
    uid_t same_owner = (uid_t)-1;
    if (token->owner == same_owner && token->group == (gid_t)-1)
        return 0;
    if (fchown(fd, token->owner, token->group) == 0)
        return 0;
    return fchown(fd, same_owner, token->group) ? -errno : 0;
}

static unsigned of_others(unsigned mode)
{
    return (mode & 07) << 3;
}

/* Looked for only where it can matter: each question is a request to a shared file system. */
static int take_list(const struct store_token *token, unsigned mode)
{
    char list[LIST_BYTES];
    if (!(mode & 070 & ~of_others(mode)))
        return 0;
    ssize_t n = getxattr(token->path, ACCESS_LIST, list, sizeof list);
    if (n < 0)
        return errno == ERANGE ? -errno : 0; /* there is none */
    return token->layout == IO_PARTS || fsetxattr(token->lock, ACCESS_LIST, list, (size_t)n, 0)
               ? -EOPNOTSUPP
               : 0;
}

void store_take_permissions(struct store_token *token, const struct stat *old)
{
    struct stat made = {.st_mode = 0};
    unsigned mode = old->st_mode & 0777; /* not another's rights to whoever runs it */
    int rc = fstat(token->lock, &made) ? -errno : 0;
    if (!rc && (made.st_uid != old->st_uid || made.st_gid != old->st_gid)) {
        token->owner = old->st_uid;
        token->group = old->st_gid;
        rc = store_give(token->lock, token);
        if (rc)
            token->owner = (uid_t)-1, token->group = (gid_t)-1;
    }
    int list = take_list(token, mode);
    if (rc || list)
        mode &= ~070u | of_others(mode);
    token->mode = (int32_t)mode;
    if (made.st_mode & 0777 & ~mode) /* now: who may not read it in the end may not read half */
        (void)fchmod(token->lock, mode | 0600);
}
