/* Symbolic links inside the staged root: they may not lead out of it. */
#include <string.h>

#include "stage/tree.h"

static size_t depth_of(const char *path) /* of "/a/b": 2 */
{
    size_t n = 0;
    for (; *path; path++)
        n += *path == '/' && path[1] != '/' && path[1] != '\0';
    return n;
}

/* Whether a relative target climbs above `depth` directories at any point. */
static int climbs_out(const char *target, size_t depth)
{
    while (*target) {
        size_t n = strcspn(target, "/");
        if (n == 2 && target[0] == '.' && target[1] == '.') {
            if (depth-- == 0)
                return 1;
        } else if (n > 0 && !(n == 1 && target[0] == '.'))
            depth++;
        target += n + (target[n] == '/');
    }
    return 0;
}

int tree_link_text(const struct brg_index *x, const struct brg_entry *link, char *out, size_t size)
{
    const char *path = brg_string(x, link->path), *target = brg_string(x, link->target);
    uint32_t entry;
    int err;
    if (brg_index_resolve(x, path, 1, &entry, &err, NULL, 0) != BRG_EXISTS)
        return -1;
    size_t up = depth_of(path) - 1; /* directories between the link and the root */
    if (target[0] != '/' && !climbs_out(target, up)) {
        if (link->target.len >= size)
            return -1;
        memcpy(out, target, link->target.len + 1);
        return 0;
    }
    /* Absolute, or out and in again: down from the root, to where it ends. An absolute target keeps
     * its own words, because the links on its way are staged too. */
    const char *rest = target[0] == '/' ? target : brg_string(x, brg_entries(x)[entry].path);
    rest += strspn(rest, "/");
    if (up * 3 + strlen(rest) + 2 > size)
        return -1;
    char *at = out;
    for (size_t i = 0; i < up; i++, at += 3)
        memcpy(at, "../", 3);
    strcpy(at, *rest ? rest : ".");
    return 0;
}
