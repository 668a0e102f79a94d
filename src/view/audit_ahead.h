/* Pages of a staged object, mapped before they are touched.
 *
 * Freestanding, like the auditor. Changes nothing that a program can see.
 */
#ifndef BRG_VIEW_AUDIT_AHEAD_H
#define BRG_VIEW_AUDIT_AHEAD_H

#include <link.h>

/* Has the kernel map the start of an object that ld.so has just mapped from node memory: its
 * symbols, and as much of its code. One system call in place of a page fault for every 64 KiB. */
void audit_map_ahead(const struct link_map *map);

#endif
