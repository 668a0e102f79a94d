/* See trust.h. */
#include "stage/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"

#define MAX_LINKS 16

static int refuse(const char *path, const char *what, struct brg_error *err)
{
    return brg_error_set(err, -EPERM,
                         "%s %s, so other users could exchange what Brigade puts there: mend "
                         "that, or choose another folder with BRIGADE_NODE_DIR",
                         path, what);
}

/* In a user namespace that does not map root, root's directories show the overflow user. */
static uid_t foreign_root(void)
{
    unsigned inside = 1, outside = 1, count = 0, user = 0;
    FILE *map = fopen("/proc/self/uid_map", "re"),
         *in = fopen("/proc/sys/kernel/overflowuid", "re");
    int whole = !map || fscanf(map, "%u %u %u", &inside, &outside, &count) != 3 ||
                (inside == 0 && outside == 0 && count == UINT_MAX);
    if (whole || !in || fscanf(in, "%u", &user) != 1)
        user = 0;
    if (map)
        fclose(map);
    if (in)
        fclose(in);
    return user;
}

static int check_one(const char *path, const struct stat *st, struct brg_error *err)
{
    if (st->st_uid != 0 && st->st_uid != geteuid() && st->st_uid != foreign_root())
        return refuse(path, "belongs to another user", err);
    if (S_ISDIR(st->st_mode) && (st->st_mode & 022) && !(st->st_mode & S_ISVTX))
        return refuse(path, "can be written to by others and is not sticky", err);
    return 0;
}

static int check_path(const char *path, int links, struct brg_error *err);

/* Where a link in the directory `above` leads. */
static int check_link(const char *link, const char *above, int links, struct brg_error *err)
{
    char target[PATH_MAX], joined[2 * PATH_MAX];
    ssize_t n = readlink(link, target, sizeof target - 1);
    if (n < 0)
        return brg_error_system(err, -errno, "cannot read the link %s", link);
    target[n] = '\0';
    snprintf(joined, sizeof joined, "%s/%s", target[0] == '/' ? "" : above, target);
    return check_path(joined, links + 1, err);
}

static int check_path(const char *path, int links, struct brg_error *err)
{
    char at[PATH_MAX], above[PATH_MAX] = "";
    size_t length = strlen(path);
    if (length >= sizeof at || links > MAX_LINKS)
        return brg_error_set(err, -ELOOP, "%s is too long, or leads through too many links", path);
    for (size_t i = 0, end; i <= length; i = end + 1) {
        struct stat st;
        end = i + strcspn(path + i, "/");
        if (end == i && i > 0)
            continue; /* a slash too many, or the last one */
        memcpy(at, path, end);
        at[end] = '\0';
        if (lstat(end ? at : "/", &st))
            return brg_error_system(err, -errno,
                                    "cannot open the node's memory folder %s (choose another one "
                                    "with BRIGADE_NODE_DIR)",
                                    at);
        int rc = check_one(end ? at : "/", &st, err);
        if (!rc && S_ISLNK(st.st_mode))
            rc = check_link(at, above, links, err);
        if (rc)
            return rc;
        memcpy(above, at, end + 1);
    }
    return 0;
}

int trust_folder(const char *path, struct brg_error *err)
{
    char here[PATH_MAX], joined[2 * PATH_MAX];
    if (path[0] == '/')
        return check_path(path, 0, err);
    if (!getcwd(here, sizeof here))
        return brg_error_system(err, -errno, "cannot tell the working directory");
    snprintf(joined, sizeof joined, "%s/%s", here, path);
    return check_path(joined, 0, err);
}
