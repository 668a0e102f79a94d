/* See alive.h. */
#include "stage/alive.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "view/state.h"

#define TOLERANCE_NS UINT64_C(2000000000) /* start times are in ticks of a clock that is adjusted */

static FILE *open_proc(uint32_t pid, const char *name)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%" PRIu32 "/%s", pid, name);
    return fopen(path, "re");
}

static int is_own(uint32_t pid)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%" PRIu32, pid);
    return stat(path, &st) == 0 && st.st_uid == geteuid();
}

static int maps(uint32_t pid, const char *tail)
{
    char *line = NULL;
    size_t room = 0, n = strlen(tail);
    int found = 0;
    FILE *in = open_proc(pid, "maps");
    while (in && !found && getline(&line, &room, in) > 0) {
        const char *at = strstr(line, tail);
        found = at && (at[n] == '\n' || at[n] == ' ');
    }
    if (in)
        fclose(in);
    free(line);
    return found;
}

static uint32_t find_mapper(const char *tail)
{
    uint32_t found = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *d; proc && !found && (d = readdir(proc));) {
        uint32_t pid = isdigit((unsigned char)d->d_name[0]) ? (uint32_t)atol(d->d_name) : 0;
        if (pid && pid != (uint32_t)getpid() && is_own(pid) && maps(pid, tail))
            found = pid;
    }
    if (proc)
        closedir(proc);
    return found;
}

/* CLOCK_REALTIME when a process started; 0 if there is none, or one that waits to be reaped. */
static uint64_t started_ns(uint32_t pid)
{
    char text[1024] = "";
    unsigned long long ticks = 0;
    struct timespec now, up;
    FILE *in = open_proc(pid, "stat");
    size_t n = in ? fread(text, 1, sizeof text - 1, in) : 0;
    if (in)
        fclose(in);
    text[n] = '\0';
    const char *rest = strrchr(text, ')'); /* field 22, counted from the one after the name */
    if (rest && strncmp(rest, ") Z", 3) == 0)
        return 0;
    for (int field = 2; rest && field < 22; field++)
        rest = strchr(rest + 1, ' ');
    if (!rest || sscanf(rest, " %llu", &ticks) != 1)
        return 0;
    clock_gettime(CLOCK_REALTIME, &now);
    clock_gettime(CLOCK_BOOTTIME, &up);
    uint64_t booted = (uint64_t)(now.tv_sec - up.tv_sec) * 1000000000u;
    return booted + ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* A process that started after its slot was taken is another one with the same number. */
static uint32_t find_in_slots(int state_fd)
{
    struct brg_state head;
    struct brg_slot slot;
    if (brg_io_pread(state_fd, &head, sizeof head, 0) != sizeof head ||
        head.magic != BRG_STATE_MAGIC || head.n_slots != BRG_STATE_SLOTS)
        return 0;
    for (uint32_t i = 0; i < head.n_slots; i++) {
        if (brg_io_pread(state_fd, &slot, sizeof slot, head.slots_off + i * sizeof slot) !=
            sizeof slot)
            return 0;
        if (!slot.pid)
            continue;
        uint64_t started = is_own(slot.pid) ? started_ns(slot.pid) : 0;
        if (started && started <= slot.start_ns + TOLERANCE_NS)
            return slot.pid;
    }
    return 0;
}

int alive_is_older(const struct timespec *when)
{
    uint64_t started = started_ns((uint32_t)getpid());
    uint64_t then = (uint64_t)when->tv_sec * 1000000000u + (uint64_t)when->tv_nsec;
    return started && then + TOLERANCE_NS < started;
}

uint32_t alive_user_of(int state_fd, const char *tail)
{
    uint32_t pid = find_in_slots(state_fd);
    return pid ? pid : find_mapper(tail);
}
