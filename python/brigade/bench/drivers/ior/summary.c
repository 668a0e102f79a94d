/* Figures of results, by IOR's formulas. Pure. */
#include <math.h>

#include "ior.h"

double sample_bandwidth(const struct sample *s)
{
    return (double)s->bytes / s->total;
}

/* IOR divides whole numbers before it divides by the time. */
double sample_iops(const struct sample *s, int64_t transfer)
{
    return (double)(s->bytes / transfer) / s->move;
}

/* A second of the whole phase; of the summary alone. */
static double operations_of(const struct sample *s, int64_t transfer)
{
    return (double)s->bytes / (double)transfer / s->total;
}

static void add(struct figures *f, double value, int first)
{
    f->max = first || value > f->max ? value : f->max;
    f->min = first || value < f->min ? value : f->min;
    f->mean += value;
}

void summary_of(const struct sample *s, int n, int step, int64_t transfer,
                struct figures *bandwidth, struct figures *operations, double *seconds)
{
    int done = 0;
    *bandwidth = *operations = (struct figures){0};
    *seconds = 0;
    for (int i = 0; i < n * step; i += step)
        if (s[i].bytes) {
            add(bandwidth, sample_bandwidth(&s[i]), done == 0);
            add(operations, operations_of(&s[i], transfer), done == 0);
            *seconds += s[i].total;
            done++;
        }
    if (!done)
        return;
    bandwidth->mean /= done;
    operations->mean /= done;
    *seconds /= done;
    for (int i = 0; i < n * step; i += step)
        if (s[i].bytes) {
            bandwidth->deviation += pow(bandwidth->mean - sample_bandwidth(&s[i]), 2);
            operations->deviation += pow(operations->mean - operations_of(&s[i], transfer), 2);
        }
    bandwidth->deviation = sqrt(bandwidth->deviation / done);
    operations->deviation = sqrt(operations->deviation / done);
}
