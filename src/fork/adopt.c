/* Taking over. See adopt.h. */
#include "fork/adopt.h"
#include "base/sys.h"
#include "fork/held.h"
#include "fork/stat.h"

#include <errno.h>
#include <linux/prctl.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- descriptors ---- */

static long close_up_to(int last)
{
    long err = sys_call(SYS_close_range, 0, last, 0, 0, 0, 0);
    if (err != -ENOSYS)
        return err;
    for (int fd = 0; fd <= last; fd++)
        sys_close(fd);
    return 0;
}

void adopt_widen(void)
{
    struct rlimit limit;
    if (sys_call(SYS_prlimit64, 0, RLIMIT_NOFILE, 0, (long)&limit, 0, 0) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    sys_call(SYS_prlimit64, 0, RLIMIT_NOFILE, (long)&limit, 0, 0, 0);
}

int adopt_descriptors(const int *from, const int32_t *to, uint32_t n, int *kept)
{
    int last = 2, moved[n + 1]; /* as many as a process has */
    for (uint32_t i = 0; i < n; i++)
        last = to[i] > last ? to[i] : last;
    if (last >= HELD_FROM && held_any())
        return -EBUSY;
    for (uint32_t i = 0; i <= n; i++) {
        moved[i] = sys_fcntl(i < n ? from[i] : *kept, F_DUPFD_CLOEXEC, last + 1);
        if (moved[i] < 0)
            return moved[i];
        sys_close(i < n ? from[i] : *kept);
    }
    *kept = moved[n];
    long err = close_up_to(last);
    for (uint32_t i = 0; err >= 0 && i < n; i++) {
        err = sys_call(SYS_dup3, moved[i], to[i], 0, 0, 0, 0);
        sys_close(moved[i]);
    }
    return err < 0 ? (int)err : 0;
}

/* ---- environment ---- */

char *adopt_environment(const char *text, size_t bytes, uint32_t n)
{
    size_t list_bytes = (n + 1) * sizeof(char *);
    char **list =
        sys_map(list_bytes + bytes + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!list)
        return NULL;
    char *copy = (char *)list + list_bytes, *at = copy;
    memcpy(copy, text, bytes);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = at;
        at += strlen(at) + 1;
    }
    environ = list;
    return copy;
}

/* ---- names ---- */

static long set_map(const uint64_t f[STAT_FIELDS], const char *text, size_t bytes)
{
    struct prctl_mm_map map = {
        .start_code = f[STAT_START_CODE],
        .end_code = f[STAT_END_CODE],
        .start_data = f[STAT_START_DATA],
        .end_data = f[STAT_END_DATA],
        .start_brk = f[STAT_START_BRK],
        .brk = (uint64_t)sys_call(SYS_brk, 0, 0, 0, 0, 0, 0),
        .start_stack = f[STAT_START_STACK],
        .arg_start = f[STAT_ARG_START],
        .arg_end = f[STAT_ARG_END],
        .env_start = (uint64_t)(uintptr_t)text,
        .env_end = (uint64_t)(uintptr_t)(text + bytes),
        .exe_fd = (uint32_t)-1,
    };
    return sys_call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, (long)&map, sizeof map, 0, 0);
}

void adopt_names(char *text, size_t bytes)
{
    uint64_t fields[STAT_FIELDS] = {0};
    if (stat_read(fields) != 0 || !fields[STAT_ENV_END] || set_map(fields, text, bytes) == 0)
        return;
    char *room = (char *)(uintptr_t)fields[STAT_ENV_START];
    size_t size = (size_t)(fields[STAT_ENV_END] - fields[STAT_ENV_START]);
    size_t used = bytes < size ? bytes : size;
    memcpy(room, text, used);
    memset(room + used, 0, size - used);
    if (used > 0)
        room[used - 1] = '\0';
}
