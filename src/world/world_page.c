/* Pages of the area that files have. See world.h. */
#include "world/world.h"

#include <string.h>

int world_take_page(struct io_world *w, int apart)
{
    for (int page = 0; (w->n_nodes == 1 || apart) && page < AREA_PAGES; page++)
        if (!(w->pages & 1u << page)) {
            w->pages |= 1u << page;
            world_clear_page(w, page);
            return page;
        }
    return -1;
}

void world_clear_page(struct io_world *w, int page)
{
    char *at = world_page(w, page);
    memset(at, 0, at[AREA_PAGE_MORE] ? AREA_PAGE_BYTES : AREA_PAGE_FIRST);
}

void world_give_page(struct io_world *w, int page)
{
    if (page >= 0)
        w->pages &= ~(1u << page);
}

char *world_page(const struct io_world *w, int page)
{
    return page < 0 ? NULL : w->area->head->pages[page];
}
