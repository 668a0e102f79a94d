/* Pages of a staged object, mapped before they are touched. See audit_ahead.h.
 *
 * A staged file is in memory: what its pages cost is not reading, but one page fault for each 16.
 * A fault costs about three times what it costs to map 16 pages in one go, so that it pays to map
 * what will be touched with a likelihood of a third: what ld.so reads for relocation, which stands
 * first in an object. More than that makes loading slower for what calls then save. What the
 * program can see stays the same, also where an object is laid out otherwise than expected: the
 * kernel then stops at the first page that is not there.
 */
#include "view/audit_ahead.h"
#include "base/sys.h"

#include <errno.h>

enum {
    MOST_BYTES = 256 << 10
};

static long map_pages(uintptr_t from, size_t bytes)
{
    return sys_call(SYS_madvise, (long)from, (long)bytes, MADV_POPULATE_READ, 0, 0, 0);
}

void audit_map_ahead(const struct link_map *map)
{
    static int cannot; /* the kernel is older than 5.14 */
    const uintptr_t page = 4096, end = (uintptr_t)map->l_ld & ~(page - 1);
    if (cannot || map->l_addr % page != 0 || end <= map->l_addr)
        return;
    size_t bytes = end - map->l_addr; /* the dynamic section stands behind the code */
    bytes = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    /* a gap between code and data is EINVAL, too, after all that lies before it */
    if (map_pages(map->l_addr, bytes) == -EINVAL)
        cannot = map_pages(map->l_addr, page) == -EINVAL;
}
