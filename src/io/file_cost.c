/* What a file costs, for the choice of the next one's transport (experience.h). */
#include "base/clock.h"
#include "io/file.h"

const struct experience *file_past(brg_file *f, enum file_action action, uint64_t run)
{
    if (action != FILE_WRITE || f->hints.transport != IO_AUTO)
        return NULL;
    return experience_of(&f->world->past, f->token.device, plan_is_long(run));
}

void file_cost_call(brg_file *f, enum io_transport transport, uint64_t bytes, uint64_t run,
                    uint64_t began_ns)
{
    struct file_cost *cost = &f->cost;
    if (bytes < EXPERIENCE_LEAST_BYTES)
        return;
    cost->mixed |=
        cost->transport && (cost->transport != transport || cost->long_runs != plan_is_long(run));
    cost->transport = transport;
    cost->long_runs = plan_is_long(run);
    cost->spent_ns += brg_clock_ns() - began_ns;
}

int64_t file_cost_key(const brg_file *f, uint64_t commit_began_ns)
{
    return -(int64_t)(f->cost.spent_ns + brg_clock_ns() - commit_began_ns);
}

void file_cost_note(brg_file *f, int64_t least)
{
    const struct file_cost *cost = &f->cost;
    if (!cost->transport || cost->mixed || f->hints.transport != IO_AUTO || f->hints.async)
        return;
    experience_note(experience_of(&f->world->past, f->token.device, cost->long_runs),
                    cost->transport, f->size, (double)-least / 1e9);
}
