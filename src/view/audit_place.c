/* Where in the staged tree the auditor sends ld.so. See audit_place.h. */
#include "view/audit_place.h"
#include "view/look.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>

/* Where a folder's files lie staged. A program loads many files from few folders, and each takes
 * several system calls to place. */
struct placed {
    char folder[256];
    char place[512]; /* ends with a slash; empty: not known */
};
static struct placed placed[32];

static int same_file(const char *a, const char *b)
{
    struct stat first, second;
    return sys_stat(a, &first) == 0 && sys_stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/* Appends the staged place of `folder`, and slashes until no file's place is shorter than its
 * original path. 0 if the image lacks the folder. */
static int place_folder(const struct view *v, const char *folder, struct text *place)
{
    char spelled[PATH_MAX];
    uint32_t dir;
    int err;
    if (brg_index_resolve(v->index, folder, 1, &dir, &err, NULL, 0) != BRG_EXISTS)
        return 0;
    const char *resolved = brg_string(v->index, brg_entries(v->index)[dir].path);
    text_bytes(place, v->root, v->root_len);
    text_add(place, resolved);
    text_add(place, "/");
    while (place->len < strlen(folder) + 1 && !place->full)
        text_add(place, "/");
    if (place->full || text_same(resolved, folder))
        return !place->full;
    struct text t = text_in(spelled, sizeof spelled);
    text_bytes(&t, v->root, v->root_len);
    text_add(&t, folder);
    text_add(&t, "/");
    if (t.full)
        return 1;
    audit_make_folder(v, spelled);
    if (same_file(spelled, place->at)) {
        *place = text_in(place->at, place->size);
        text_add(place, spelled);
    }
    return !place->full;
}

int audit_staged_place(const struct view *v, const char *path, char *place, size_t size)
{
    char folder[PATH_MAX];
    const char *base = text_base(path);
    struct text t = text_in(folder, sizeof folder), to = text_in(place, size);
    text_bytes(&t, path, (size_t)(base - path) - (base - path > 1));
    if (t.full)
        return 0;
    struct placed *known = &placed[brg_hash(folder, t.len, 0) % (sizeof placed / sizeof *placed)];
    if (known->place[0] && text_same(known->folder, folder)) {
        text_add(&to, known->place);
    } else {
        if (!place_folder(v, folder, &to))
            return 0;
        if (t.len < sizeof known->folder && to.len < sizeof known->place) {
            memcpy(known->folder, folder, t.len + 1);
            memcpy(known->place, place, to.len + 1);
        }
    }
    text_add(&to, base);
    return !to.full;
}

char *audit_missing_place(const struct view *v, const char *path)
{
    static char place[PATH_MAX];
    struct text t = text_in(place, sizeof place);
    text_bytes(&t, v->root, v->root_len);
    text_add(&t, path);
    return t.full ? (char *)path : place;
}

void audit_make_folder(const struct view *v, const char *candidate)
{
    char path[PATH_MAX];
    struct text t = text_in(path, sizeof path);
    text_add(&t, candidate);
    for (char *p = path + v->root_len + 1; !t.full && *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        sys_mkdir(path, 0700);
        *p = '/';
    }
}
