/* Reading mount tables. See mountinfo.h. */
#include "base/mountinfo.h"
#include "base/sys.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

enum {
    MAX_TABLE = 4 << 20
};

/* Spaces and their like stand as three octal digits there. */
static void unescape(char *text)
{
    char *to = text;
    for (; *text; text++) {
        unsigned code;
        if (*text == '\\' && strspn(text + 1, "01234567") >= 3 &&
            sscanf(text + 1, "%3o", &code) == 1) {
            *to++ = (char)code;
            text += 3;
        } else {
            *to++ = *text;
        }
    }
    *to = '\0';
}

/* `36 35 98:0 /root /point options ... - type source options` */
static int add_line(struct mountinfo *t, char *line)
{
    char *rest = NULL, *fields[5], *type;
    for (int i = 0; i < 5; i++)
        if (!(fields[i] = strtok_r(i ? NULL : line, " ", &rest)))
            return 0;
    rest = strstr(rest, " - ");
    type = rest ? strtok_r(rest + 3, " ", &rest) : NULL;
    struct mount *more = realloc(t->mounts, (t->n + 1) * sizeof *more);
    if (!more)
        return -1;
    unescape(fields[3]);
    unescape(fields[4]);
    t->mounts = more;
    t->mounts[t->n++] = (struct mount){fields[2], fields[3], fields[4], type ? type : ""};
    return 0;
}

void mountinfo_free(struct mountinfo *t)
{
    free(t->text);
    free(t->mounts);
}

int mountinfo_read(struct mountinfo *t, const char *path)
{
    *t = (struct mountinfo){malloc(MAX_TABLE), NULL, 0};
    long n = t->text ? sys_read_text(path, t->text, MAX_TABLE) : -1;
    int err = n > 0 && n < MAX_TABLE - 1 ? 0 : -1;
    char *rest = NULL;
    for (char *line = err ? NULL : strtok_r(t->text, "\n", &rest); line && !err;
         line = strtok_r(NULL, "\n", &rest))
        err = add_line(t, line);
    if (!err && t->n)
        return 0;
    mountinfo_free(t);
    *t = (struct mountinfo){NULL, NULL, 0};
    return -1;
}

int mountinfo_is_in(const char *path, size_t n, const char *folder)
{
    size_t m = strlen(folder);
    if (m == 1)
        return 1;
    return n >= m && memcmp(path, folder, m) == 0 && (n == m || path[m] == '/');
}

const struct mount *mountinfo_of(const struct mountinfo *t, const char *path, size_t n)
{
    const struct mount *found = NULL;
    for (size_t i = 0; i < t->n; i++)
        if (mountinfo_is_in(path, n, t->mounts[i].point) &&
            (!found || strlen(t->mounts[i].point) >= strlen(found->point)))
            found = &t->mounts[i];
    return found;
}

uint64_t mountinfo_number(const struct mount *m)
{
    unsigned major_number, minor_number;
    return sscanf(m->device, "%u:%u", &major_number, &minor_number) == 2
               ? makedev(major_number, minor_number)
               : 0;
}
