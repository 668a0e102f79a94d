/* What ranks of other nodes see of what one has written: see hull.h and onesided_parts.h.
 *
 * A call that shows what it writes ends with every rank letting go of the file, also those that
 * had nothing to write: they look again. What else was written, by calls that do not, or by one
 * rank alone, is shown before a call that reaches it: owners read what lies in holes of their
 * windows, and write it again. On one node nothing is closed. */
#include "move/onesided_parts.h"

#define NONE INT64_MAX

static int shows(const struct onesided_run *run)
{
    return run->collect && run->call->shows && run->o->pgas->n_nodes > 1;
}

void show_own(struct onesided_run *run)
{
    if (shows(run))
        store_show(run->call->store, &run->failure);
}

int show_all(struct onesided_run *run)
{
    int64_t none = NONE;
    if (!shows(run))
        return 0;
    show_own(run);
    return rounds_agree(run, &none);
}

int show_before(struct onesided_run *run, const struct io_extent *extent)
{
    struct hull *behind = run->call->behind;
    int64_t none = NONE;
    if (run->o->pgas->n_nodes == 1 || !hull_meets(behind, extent->low, extent->high))
        return 0;
    drain_show(run->call->drain, &run->failure);
    int rc = rounds_agree(run, &none);
    if (!rc)
        *behind = (struct hull){0, 0};
    return rc;
}

void show_ended(struct onesided_run *run, const struct io_extent *extent, int failed)
{
    const struct io_request *request = run->call->request;
    if (run->collect && (failed || !shows(run)))
        hull_add(run->call->behind, request->low, request->high);
    else if (run->collect && extent->low < extent->high)
        *run->call->behind = (struct hull){0, 0};
}
