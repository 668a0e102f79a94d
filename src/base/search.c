/* Searching PATH. See search.h. */
#include "base/search.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>

/* What execvp tries where there is no PATH. */
static const char by_default[] = "/bin:/usr/bin";

static int leads_on(int err)
{
    switch (-err) {
    case EACCES:
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
    case ENODEV:
    case ETIMEDOUT: return 1;
    default: return 0;
    }
}

/* `file` in a folder whose name has `n` bytes. */
static int try_in(const char *folder, size_t n, const char *file, char path[PATH_MAX],
                  search_try *try, void *context)
{
    struct text t = text_in(path, PATH_MAX);
    text_bytes(&t, folder, n);
    text_add(&t, n ? "/" : "");
    text_add(&t, file);
    return t.full ? -ENAMETOOLONG : try(context, path);
}

int search_path(const char *file, const char *path_list, char path[PATH_MAX], search_try *try,
                void *context)
{
    size_t length = strlen(file);
    int err = -ENOENT, denied = 0;
    path[0] = '\0';
    if (!*file)
        return -ENOENT;
    if (text_base(file) != file)
        return try_in("", 0, file, path, try, context);
    if (length > NAME_MAX)
        return -ENAMETOOLONG;
    for (const char *p = path_list ? path_list : by_default;; p++) {
        size_t n = 0;
        while (p[n] && p[n] != ':')
            n++;
        if (n < PATH_MAX)
            err = try_in(p, n, file, path, try, context);
        if (!leads_on(err))
            return err;
        denied |= err == -EACCES;
        p += n;
        if (!*p)
            return denied ? -EACCES : err;
    }
}

/* Linux 5.8 asks by the descriptor; before, the path is walked once more. */
static int may_execute(int fd, const char *path)
{
    int err = (int)sys_call(SYS_faccessat2, fd, (long)"", X_OK, AT_EMPTY_PATH, 0, 0);
    return err == -ENOSYS || err == -EPERM ? sys_access(path, X_OK) : err;
}

/* One walk of the path: each costs a shared file system a request a folder. */
int search_is_program(const char *path)
{
    struct stat st;
    int fd = sys_open(path, O_PATH | O_CLOEXEC, 0);
    if (fd < 0)
        return fd;
    int err = sys_fstat(fd, &st);
    if (!err)
        err = S_ISREG(st.st_mode) ? may_execute(fd, path) : -EACCES;
    sys_close(fd);
    return err;
}

static int is_program(void *context, const char *path)
{
    (void)context;
    return search_is_program(path);
}

int search_program(const char *file, const char *path_list, char path[PATH_MAX])
{
    return search_path(file, path_list, path, is_program, NULL);
}
