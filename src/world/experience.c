/* See experience.h. */
#include "world/experience.h"

#include <stdio.h>
#include <string.h>

struct experience *experience_peek(struct experiences *all, uint64_t device, int long_runs)
{
    for (unsigned i = 0; i < all->n; i++)
        if (all->places[i].device == device && all->places[i].long_runs == long_runs)
            return &all->places[i].experience;
    return NULL;
}

struct experience *experience_of(struct experiences *all, uint64_t device, int long_runs)
{
    struct experience *known = experience_peek(all, device, long_runs);
    if (known)
        return known;
    struct experience_place *place = &all->places[all->next];
    all->next = (all->next + 1) % EXPERIENCE_PLACES;
    if (all->n < EXPERIENCE_PLACES)
        all->n++;
    *place = (struct experience_place){.device = device, .long_runs = long_runs};
    return &place->experience;
}

enum io_transport experience_choose(const struct experience *e, enum io_transport by_rule,
                                    unsigned candidates)
{
    enum io_transport best = by_rule;
    if (e->bytes_s[by_rule] == 0)
        return by_rule;
    for (enum io_transport t = IO_DIRECT; t <= IO_ROTATE; t++) {
        if (!(candidates & 1u << t))
            continue;
        if (e->bytes_s[t] == 0)
            return t;
        if (e->bytes_s[t] > e->bytes_s[best])
            best = t;
    }
    return best;
}

void experience_note(struct experience *e, enum io_transport transport, uint64_t bytes,
                     double seconds)
{
    if (bytes < EXPERIENCE_LEAST_BYTES || !(seconds > 0))
        return;
    double now = (double)bytes / seconds, *kept = &e->bytes_s[transport];
    *kept = *kept == 0 ? now : (*kept + now) / 2;
}

void experience_tell(const struct experience *e, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (enum io_transport t = IO_DIRECT; t <= IO_ROTATE && used < size; t++)
        if (e->bytes_s[t] > 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s %.0f MB/s", used ? ", " : "",
                                     io_transport_names[t], e->bytes_s[t] / 1e6);
}
