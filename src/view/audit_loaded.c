/* What the auditor remembers of the objects that are loaded. See audit_loaded.h. */
#include "view/audit_loaded.h"
#include "view/text.h"

#include <stddef.h>

static uint32_t loaded[2048];
static unsigned n_loaded;
static const struct link_map *program;

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
