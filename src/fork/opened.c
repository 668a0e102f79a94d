/* Descriptors of a template. See opened.h. */
#include "fork/opened.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/held.h"

enum {
    LOOKED_AT = 1024 /* numbers */
};

int opened_besides(int listener, char *words, size_t size)
{
    char path[40], target[80];
    for (int fd = 3; fd < LOOKED_AT; fd++) {
        if (fd == listener || held_has(fd) || sys_fcntl(fd, F_GETFD, 0) < 0)
            continue;
        struct text name = text_in(path, sizeof path), t = text_in(words, size);
        text_add(&name, "/proc/self/fd/");
        text_number(&name, (uint64_t)fd, 10);
        long n = sys_readlink(path, target, sizeof target - 1);
        target[n > 0 ? n : 0] = '\0';
        text_add(&t, "something that was loaded keeps open: ");
        text_bytes(&t, target,
                   strlen(target) < t.size - t.len ? strlen(target) : t.size - t.len - 1);
        return 1;
    }
    return 0;
}

void opened_close_at_exec(void)
{
    for (int fd = 3; fd < LOOKED_AT; fd++)
        sys_fcntl(fd, F_SETFD, FD_CLOEXEC);
}

void opened_let_go(void)
{
    int nothing = sys_open("/dev/null", O_RDWR | O_CLOEXEC, 0);
    for (int fd = 0; fd < 3 && nothing >= 0; fd++)
        if (nothing != fd)
            sys_call(SYS_dup3, nothing, fd, 0, 0, 0, 0);
    if (nothing > 2)
        sys_close(nothing);
}
