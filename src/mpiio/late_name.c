/* See late_name.h. */
#include "mpiio/late_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "mpiio/file.h"
#include "store/store.h"

/* What MPI takes to open one; a rank that runs out of them while the others wait for it in MPI
 * would keep them there. */
#define DESCRIPTORS 4

static int lacks_descriptors(void)
{
    int fd[DESCRIPTORS], n = 0, rc = 0;
    while (!rc && n < DESCRIPTORS) {
        fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC);
        rc = fd[n] < 0 ? -errno : 0;
        n += !rc;
    }
    while (n)
        close(fd[--n]);
    return rc;
}

static int is_it(const char *path, const struct stat *file)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
}

void late_name_look(struct late_name *name, const struct file *file, int pid, int descriptor)
{
    struct stat st;
    int access = (file->can_read ? R_OK : 0) | (file->can_write ? W_OK : 0);
    int64_t *found = name->found;
    name->name = file->all.token.path;
    snprintf(name->number, sizeof name->number, "/proc/%d/fd/%d", pid, descriptor);
    found[LATE_BY_NAME] = found[LATE_BY_NUMBER] = 0;
    found[LATE_CODE] = fstat(store_descriptor(file->all.store), &st) ? -errno : 0;
    if (found[LATE_CODE])
        return;
    found[LATE_BY_NAME] = is_it(name->name, &st);
    found[LATE_BY_NUMBER] = is_it(name->number, &st);
    const char *path = found[LATE_BY_NAME] ? name->name : name->number;
    if (!found[LATE_BY_NAME] && !found[LATE_BY_NUMBER])
        found[LATE_CODE] = -ENOENT;
    else if (faccessat(AT_FDCWD, path, access, AT_EACCESS))
        found[LATE_CODE] = -errno;
    else
        found[LATE_CODE] = lacks_descriptors();
}

int late_name_choose(struct late_name *name)
{
    int is_gone = !name->found[LATE_BY_NAME] && name->found[LATE_BY_NUMBER];
    name->path = is_gone ? name->number : name->name;
    if (name->found[LATE_CODE])
        return (int)name->found[LATE_CODE];
    return name->found[LATE_BY_NAME] || name->found[LATE_BY_NUMBER] ? 0 : -ENOENT;
}
