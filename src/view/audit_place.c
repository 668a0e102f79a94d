/* Where in the staged tree the auditor sends ld.so. See audit_place.h. */
#include "view/audit_place.h"
#include "view/look.h"
#include "view/sys.h"
#include "view/text.h"

#include <errno.h>

static int same_file(const char *a, const char *b)
{
    struct stat first, second;
    return sys_stat(a, &first) == 0 && sys_stat(b, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

int audit_staged_place(const struct view *v, const char *path, char *place, size_t size)
{
    static char spelled[PATH_MAX];
    char folder[PATH_MAX];
    uint32_t dir;
    int err;
    const char *base = text_base(path);
    struct text t = text_in(folder, sizeof folder);
    text_bytes(&t, path, (size_t)(base - path) - (base - path > 1));
    if (t.full || brg_index_resolve(v->index, folder, 1, &dir, &err, NULL, 0) != BRG_EXISTS)
        return 0;
    const char *resolved = brg_string(v->index, brg_entries(v->index)[dir].path);
    t = text_in(place, size);
    text_bytes(&t, v->root, v->root_len);
    text_add(&t, resolved);
    text_add(&t, "/");
    for (size_t n = v->root_len + strlen(resolved) + 1 + strlen(base); n < strlen(path); n++)
        text_add(&t, "/");
    text_add(&t, base);
    if (t.full || sys_access(place, R_OK) != 0)
        return 0;
    if (text_same(resolved, folder))
        return 1;
    t = text_in(spelled, sizeof spelled);
    text_bytes(&t, v->root, v->root_len);
    text_add(&t, path);
    if (t.full)
        return 1;
    audit_make_folder(v, spelled);
    if (same_file(spelled, place)) {
        t = text_in(place, size);
        text_add(&t, spelled);
    }
    return 1;
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
