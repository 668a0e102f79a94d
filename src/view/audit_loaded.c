/* What the auditor remembers of the objects that are loaded. See audit_loaded.h. */
#include "view/audit_loaded.h"
#include "base/text.h"

#include <stddef.h>

static uint32_t loaded[2048];
static unsigned n_loaded;
static const struct link_map *program;
static char aliases[16 << 10]; /* asked, path, asked, path, ... */
static size_t alias_bytes;

void audit_note_loaded(uint32_t entry)
{
    if (n_loaded < sizeof loaded / sizeof *loaded && !audit_was_loaded(entry))
        loaded[n_loaded++] = entry;
}

int audit_was_loaded(uint32_t entry)
{
    for (unsigned i = 0; i < n_loaded; i++)
        if (loaded[i] == entry)
            return 1;
    return 0;
}

int audit_has_file(const char *base, const struct link_map *map)
{
    while (map && map->l_prev)
        map = map->l_prev;
    for (; map; map = map->l_next)
        if (map->l_name && text_same(text_base(map->l_name), base))
            return 1;
    return 0;
}

/* The path of `asked`, the last one noted, whatever is loaded; NULL if it is not known. */
static const char *known_alias(const char *asked)
{
    const char *found = NULL;
    for (const char *p = aliases, *end = aliases + alias_bytes; p < end;) {
        const char *path = p + strlen(p) + 1;
        if (text_same(p, asked))
            found = path;
        p = path + strlen(path) + 1;
    }
    return found;
}

void audit_note_alias(const char *asked, const char *path)
{
    const char *known = known_alias(asked);
    if (known && text_same(known, path))
        return;
    struct text t = text_in(aliases + alias_bytes, sizeof aliases - alias_bytes);
    text_field(&t, asked);
    text_field(&t, path);
    if (!t.full)
        alias_bytes += t.len;
}

const char *audit_alias(const char *asked, const struct link_map *map)
{
    const char *path = known_alias(asked);
    return path && audit_has_file(text_base(path), map) ? path : NULL;
}

void audit_note_program(const struct link_map *map)
{
    if (!program)
        program = map;
}

int audit_is_in_base(const struct link_map *map)
{
    while (map && map->l_prev)
        map = map->l_prev;
    return map && map == program;
}
