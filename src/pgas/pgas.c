/* What is the same over any back end. */
#include "pgas/pgas.h"

int pgas_failure(struct pgas *p, struct brg_error *mine)
{
    struct brg_error err = {.rank = -1, .offset = -1};
    int64_t first = mine->code ? (int64_t)p->rank : INT64_MAX;
    if (mine->code && mine->rank < 0)
        mine->rank = (int)p->rank;
    int rc = p->reduce(p, PGAS_MIN, &first, 1, &err);
    if (!rc && first != INT64_MAX)
        rc = p->broadcast(p, mine, sizeof *mine, (uint32_t)first, &err);
    if (rc)
        *mine = err;
    return mine->code;
}
