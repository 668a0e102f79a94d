/* A stretch of a file that some bytes lie in: of those that were written and may not have reached
 * the file system's servers. Each node's client of a network file system keeps what was written
 * until the file is closed there (store_show): another node does not see it, and what that writes
 * to the same bytes may get there before. Pure. */
#ifndef BRG_MOVE_HULL_H
#define BRG_MOVE_HULL_H

#include <stdint.h>

struct hull {
    uint64_t low, high; /* [low, high); of nothing both are 0 */
};

/* [low, high) as well. */
void hull_add(struct hull *hull, uint64_t low, uint64_t high);
/* Whether some byte is in both. */
int hull_meets(const struct hull *hull, uint64_t low, uint64_t high);

/* What a rank says of its own, and that of all, from the least of all ranks' of each value. */
enum hull_value {
    HULL_LOW,
    HULL_HIGH,
    HULL_VALUES
};
void hull_say(const struct hull *hull, int64_t values[HULL_VALUES]);
struct hull hull_heard(const int64_t least[HULL_VALUES]);

#endif
