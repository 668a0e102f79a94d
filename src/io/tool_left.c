/* brigade-file leftovers and remove: what jobs that died have left beside files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/store_inside.h"
#include "store/store_io.h"
#include "io/tool.h"

#define ID_DIGITS 16

/* What is there of one .NAME.brg-ID; the first that is stands for it. */
static const char *const suffixes[] = {"", ".blocks", ".sums", ".parts", NULL};

/* The length of ".NAME.brg-ID" in a name that begins so, or 0. */
static size_t base_length(const char *name)
{
    const char *mark = NULL;
    for (const char *at = name; (at = strstr(at, ".brg-")); at++)
        mark = at;
    if (name[0] != '.' || !mark || mark == name || strspn(mark + 5, "0123456789abcdef") < ID_DIGITS)
        return 0;
    const char *suffix = mark + 5 + ID_DIGITS;
    for (const char *const *s = suffixes; *s; s++)
        if (strcmp(suffix, *s) == 0)
            return (size_t)(suffix - name);
    return 0;
}

static uint64_t bytes_of(const char *path)
{
    struct stat st;
    uint64_t bytes = 0;
    if (lstat(path, &st))
        return 0;
    if (!S_ISDIR(st.st_mode))
        return (uint64_t)st.st_blocks * 512;
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_blocks * 512 : 0;
    if (dir)
        closedir(dir);
    return bytes;
}

/* Whether an index in this folder is made of these parts, whatever its name. */
static int used(const char *folder, const char *parts)
{
    char path[STORE_PATH + 256];
    struct parts_head head;
    struct dirent *entry;
    DIR *dir = opendir(folder);
    int found = 0;
    while (dir && !found && (entry = readdir(dir))) {
        if (entry->d_type != DT_REG && entry->d_type != DT_UNKNOWN)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        found = parts_head_read(path, &head, NULL) == 0 && strcmp(head.folder, parts) == 0;
    }
    if (dir)
        closedir(dir);
    return found;
}

/* What is to be said of a base: NULL if it is part of a file that is there. */
static const char *state_of(const char *folder, const char *base)
{
    char parts[STORE_NAME_BYTES];
    const char *id = strrchr(base, '-') + 1;
    char host[9];
    snprintf(host, sizeof host, "%08x", store_host());
    store_parts_folder(parts, base);
    switch (store_owner(base)) {
    case OWNER_LIVES: return "in use";
    case OWNER_UNKNOWN: return "perhaps in use: its lock cannot be tried";
    case OWNER_DEAD:
        return strncmp(id, host, 8) == 0 ? "dead" : "of another host, or before its last start";
    case OWNER_GONE: break;
    }
    if (access(parts, F_OK))
        return "dead"; /* what was left after publishing */
    return used(folder, strrchr(parts, '/') + 1) ? NULL : "parts of no file in this folder";
}

static void tell(const char *folder, const char *base, int *n, struct json *j)
{
    char name[STORE_NAME_BYTES];
    const char *state = state_of(folder, base);
    uint64_t bytes = 0;
    if (!state)
        return;
    for (const char *const *s = suffixes; *s; s++) {
        store_name(name, base, *s);
        bytes += bytes_of(name);
    }
    json_add(j, "%s{", (*n)++ ? ", " : "");
    tool_add_string(j, "base", base);
    tool_add_string(j, "state", state);
    tool_add_number(j, "bytes", bytes);
    json_add(j, "}");
}

/* Of all files with one base, the first in this order stands for it. */
static int is_first(const char *folder, const char *name, size_t length)
{
    char path[STORE_PATH + 256];
    const char *suffix = name + length;
    for (const char *const *s = suffixes; strcmp(*s, suffix); s++) {
        snprintf(path, sizeof path, "%s/%.*s%s", folder, (int)length, name, *s);
        if (access(path, F_OK) == 0)
            return 0;
    }
    return 1;
}

int tool_leftovers(char **words)
{
    char base[STORE_PATH];
    struct brg_error err;
    struct json j = {0};
    struct dirent *entry;
    int n = 0;
    DIR *dir = opendir(words[0]);
    if (!dir) {
        store_failed(&err, -errno, words[0], -1, "look into");
        return tool_error(&err);
    }
    json_add(&j, "{\"leftovers\": [");
    while ((entry = readdir(dir))) {
        size_t length = base_length(entry->d_name);
        if (length && is_first(words[0], entry->d_name, length) &&
            snprintf(base, sizeof base, "%s/%.*s", words[0], (int)length, entry->d_name) <
                (int)sizeof base)
            tell(words[0], base, &n, &j);
    }
    closedir(dir);
    json_add(&j, "]}");
    return json_print(&j, STDOUT_FILENO) != 0;
}

int tool_remove(char **words)
{
    char parts[STORE_NAME_BYTES];
    struct brg_error err;
    store_parts_folder(parts, words[0]);
    int rc = parts_remove(parts);
    if (rc) /* it stays the owner of its parts */
        store_failed(&err, rc, parts, -1, "remove");
    else if ((rc = store_remove_temporary(words[0])))
        store_failed(&err, rc, words[0], -1, "remove");
    if (rc)
        return tool_error(&err);
    printf("{}\n");
    return 0;
}
