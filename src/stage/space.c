/* See space.h. */
#include "stage/space.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

#include "view/state.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct space space_needed(const void *head, uint32_t page_bytes)
{
    const struct brg_index *x = brg_head_index(head);
    const struct brg_entry *entries = brg_entries(x);
    uint64_t page = page_bytes, round = page - 1;
    /* The folder, index, root, jobs, the job's folder and state. */
    struct space need = {.inodes = 6};
    need.bytes = ((x->bytes + round) & ~round) + ((brg_state_bytes(x->n_entries) + round) & ~round);
    for (uint32_t i = 0; i < x->n_entries; i++) {
        if (entries[i].kind == BRG_FILE && entries[i].content != BRG_NONE)
            need.bytes += (brg_contents(x)[entries[i].content].size + round) & ~round;
        if (entries[i].kind == BRG_DIR || entries[i].kind == BRG_SYMLINK ||
            entries[i].content != BRG_NONE)
            need.inodes++;
    }
    return need;
}

static int read_number(const char *path, uint64_t *number)
{
    char text[64] = "";
    FILE *in = fopen(path, "re");
    int got = in && fgets(text, sizeof text, in) && sscanf(text, "%" SCNu64, number) == 1;
    if (in)
        fclose(in);
    return got ? 0 : -1;
}

/* The value of a line "name value" of a file, e.g. of memory.stat. */
static uint64_t read_line(const char *path, const char *name)
{
    char line[256];
    uint64_t value = 0;
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in))
        if (strncmp(line, name, strlen(name)) == 0)
            sscanf(line + strlen(name), "%*[: ]%" SCNu64, &value);
    if (in)
        fclose(in);
    return value;
}

/* Page cache counts as used but gives way: it is on the file lists, where tmpfs pages are not. */
static uint64_t group_left(const char *folder, const char *limit, const char *usage)
{
    char path[PATH_MAX + 64];
    uint64_t most, used = 0;
    snprintf(path, sizeof path, "%s/%s", folder, limit);
    if (read_number(path, &most))
        return UINT64_MAX;
    snprintf(path, sizeof path, "%s/%s", folder, usage);
    read_number(path, &used);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    uint64_t cache = read_line(path, "inactive_file") + read_line(path, "active_file");
    used -= smaller(cache, used);
    return most - smaller(used, most);
}

/* A group is limited by all groups above it too. */
static uint64_t chain_left(const char *top, char *group, const char *limit, const char *usage)
{
    uint64_t left = UINT64_MAX;
    for (;;) {
        char folder[PATH_MAX];
        snprintf(folder, sizeof folder, "%s%s", top, group);
        left = smaller(left, group_left(folder, limit, usage));
        char *slash = strrchr(group, '/');
        if (!slash)
            return left;
        *slash = '\0';
    }
}

uint64_t space_cgroup(const char *proc, const char *sys)
{
    char path[PATH_MAX], line[PATH_MAX], top[PATH_MAX];
    uint64_t left = UINT64_MAX;
    snprintf(path, sizeof path, "%s/self/cgroup", proc);
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in)) { /* "0::/group" or "5:memory:/group" */
        line[strcspn(line, "\n")] = '\0';
        char *names = strchr(line, ':'), *group = names ? strchr(names + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (names[1] == '\0') {
            left = smaller(left, chain_left(sys, group, "memory.max", "memory.current"));
        } else if (strstr(names, "memory")) {
            snprintf(top, sizeof top, "%.4000s/memory", sys);
            left = smaller(
                left, chain_left(top, group, "memory.limit_in_bytes", "memory.usage_in_bytes"));
        }
    }
    if (in)
        fclose(in);
    return left;
}

int space_free(int dir_fd, struct space *out)
{
    struct statfs fs;
    if (fstatfs(dir_fd, &fs))
        return -errno;
    struct space free = {.bytes = UINT64_MAX, .inodes = UINT64_MAX};
    int in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
    if (fs.f_blocks) /* a tmpfs without a size says 0 */
        free.bytes = (uint64_t)fs.f_bavail * (uint64_t)fs.f_bsize;
    if (fs.f_files)
        free.inodes = fs.f_ffree;
    if (in_memory) {
        uint64_t available = read_line("/proc/meminfo", "MemAvailable") * 1024;
        if (available)
            free.bytes = smaller(free.bytes, available);
        free.bytes = smaller(free.bytes, space_cgroup("/proc", "/sys/fs/cgroup"));
    }
    *out = free;
    return 0;
}
