/* What no child of fork takes over. See own.h.
 *
 * A template that has run constructors cannot know what they did: it looks at what is left of it.
 */
#include "fork/own.h"
#include "base/sys.h"
#include "base/text.h"
#include "fork/self.h"
#include "fork/stat.h"

#include <signal.h>
#include <sys/time.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    PIECE = 32 << 10,
    LINE = 512
};

static uint64_t first_alarm_ns;

/* A line of /proc/self/maps: whether it is memory that is written to by all who share it. */
static int is_shared(const char *line, const char *allowed)
{
    const char *rights = line, *path = line;
    while (*rights && *rights != ' ')
        rights++;
    while (*path && *path != '/')
        path++;
    if (strlen(rights) < 5 || rights[2] != 'w' || rights[4] != 's')
        return 0;
    return !allowed || !text_same(path, allowed);
}

/* Whether any line of the maps is. What cannot be read, is. */
static int has_shared(const char *allowed)
{
    static char piece[PIECE];
    char line[LINE];
    size_t used = 0;
    int found = 0;
    int fd = sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 1;
    for (;;) {
        long n = sys_read(fd, piece, sizeof piece);
        if (n <= 0)
            break;
        for (long i = 0; i < n; i++) {
            if (piece[i] != '\n') {
                if (used < sizeof line - 1)
                    line[used++] = piece[i];
                continue;
            }
            line[used] = '\0';
            found |= is_shared(line, allowed);
            used = 0;
        }
    }
    sys_close(fd);
    return found;
}

static int has_locked(void)
{
    static char text[SELF_STATUS];
    if (sys_read_text("/proc/self/status", text, sizeof text) <= 0)
        return 1;
    return text_line_number(text, "VmLck:") != 0;
}

/* When the process's alarm will come, by a clock in nanoseconds; 0: it has none. */
static uint64_t next_alarm(void)
{
    struct itimerval left;
    memset(&left, 0, sizeof left);
    sys_call(SYS_getitimer, ITIMER_REAL, (long)&left, 0, 0, 0, 0);
    uint64_t in_ns =
        (uint64_t)left.it_value.tv_sec * SECOND_NS + (uint64_t)left.it_value.tv_usec * 1000;
    return in_ns ? sys_now_ns(CLOCK_MONOTONIC) + in_ns : 0;
}

void own_begin(void)
{
    first_alarm_ns = next_alarm();
}

static int has_alarm(void)
{
    uint64_t now_ns = next_alarm(), first_ns = first_alarm_ns;
    return (now_ns < first_ns ? first_ns - now_ns : now_ns - first_ns) > SECOND_NS;
}

static int has_timer(void)
{
    char text[64];
    for (int which = ITIMER_VIRTUAL; which <= ITIMER_PROF; which++) {
        struct itimerval left;
        memset(&left, 0, sizeof left);
        sys_call(SYS_getitimer, which, (long)&left, 0, 0, 0, 0);
        if (left.it_value.tv_sec || left.it_value.tv_usec)
            return 1;
    }
    return sys_read_text("/proc/self/timers", text, sizeof text) > 0;
}

int own_is_alone(void)
{
    uint64_t fields[STAT_FIELDS] = {0};
    return stat_read(fields) == 0 && fields[STAT_THREADS] == 1;
}

const char *own_besides(const char *shared)
{
    if (has_alarm())
        return "an alarm was set";
    if (has_timer())
        return "a timer was set";
    if (has_locked())
        return "memory was locked";
    if (has_shared(shared))
        return "memory was shared";
    return NULL;
}

/* libc takes a signal of its own, which signal() refuses, with the first thread. */
void own_as_started(uint64_t was_ignored)
{
    const struct itimerval none = {{0, 0}, {0, 0}};
    for (int number = 1; number < 65; number++) {
        int ignored = was_ignored >> (number - 1) & 1;
        uint64_t action[8] = {(uintptr_t)(ignored ? SIG_IGN : SIG_DFL)}; /* as the kernel has it */
        sys_call(SYS_rt_sigaction, number, (long)action, 0, sizeof(uint64_t), 0, 0);
    }
    sys_call(SYS_setitimer, ITIMER_VIRTUAL, (long)&none, 0, 0, 0, 0);
    sys_call(SYS_setitimer, ITIMER_PROF, (long)&none, 0, 0, 0, 0);
}
