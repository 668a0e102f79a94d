/* Judging a program by its file. See stoppable.h.
 *
 * A template that does not stop would run the program once more than there are ranks: whatever is
 * not certain to load our libraries is none.
 */
#include "view/stoppable.h"
#include "base/sys.h"
#include "view/trace.h"

#include <elf.h>
#include <string.h>
#include <sys/xattr.h>

const char *stoppable(const char *file, const char *path_list)
{
    char path[PATH_MAX], head[SELFMAG];
    struct stat st;
    if (!trace_find(file, path_list, path, sizeof path))
        return "the program was not found";
    if (trace_inspect(path, path_list) != BINARY_JOINS)
        return "the program is static, or not for this system's C library";
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    long n = fd < 0 ? 0 : sys_read(fd, head, sizeof head);
    sys_close(fd);
    if (n != sizeof head || memcmp(head, ELFMAG, SELFMAG) != 0)
        return "the program is a script";
    if (sys_stat(path, &st) != 0 || (st.st_mode & (S_ISUID | S_ISGID)) ||
        getxattr(path, "security.capability", NULL, 0) > 0)
        return "the program runs with another user's rights";
    return NULL;
}
