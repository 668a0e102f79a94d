/* Types that are a part of an array: subarray and darray. See type.h.
 *
 * Both are made dimension by dimension, from the fastest to the slowest: what one holds of a
 * dimension is a row, or a list of a row and an incomplete block, of what it holds of those
 * inside. */
#include <errno.h>

#include "type/type.h"
#include "type/type_inside.h"

/* What is made of an array so far: the next dimension's elements are `step` bytes apart. */
struct growing {
    struct placed data;
    wide at; /* where the data lie, apart from what the layout says */
    wide step;
};

static int narrow(wide value, int64_t *out)
{
    *out = (int64_t)value;
    return value == *out ? 0 : -EOVERFLOW;
}

/* Replaces the data by `what`. */
static void replace(struct growing *g, struct placed what)
{
    layout_release(g->data.layout);
    g->data = what;
}

/* `count` of what there is, `step` bytes apart each. */
static int repeat(struct growing *g, int64_t count, wide step)
{
    struct placed row;
    int64_t stride = 0;
    int rc = count > 1 ? narrow(step, &stride) : 0;
    if (rc == 0)
        rc = layout_row(g->data, (uint64_t)count, stride, &row);
    if (rc == 0)
        replace(g, row);
    return rc;
}

static int finish(const char *name, struct growing *g, int rc, struct type **out,
                  struct brg_error *err)
{
    struct bounds bounds = {.ub = g->step, .set_lb = 1, .set_ub = 1};
    if (rc == 0 && g->data.layout)
        rc = narrow(g->at + g->data.at, &g->data.at);
    if (rc) {
        layout_release(g->data.layout);
        return type_failed(name, rc, err);
    }
    return type_make(name, g->data, &bounds, out, err);
}

static struct growing begin(const struct type *old)
{
    struct placed data = {.layout = layout_share(old->data.layout), .at = old->data.at};
    return (struct growing){.data = data, .step = type_extent(old)};
}

/* Whether an array with `size` of these elements fits. */
static int check_room(const struct growing *g, int64_t size)
{
    int64_t bytes;
    return narrow(g->step * size, &bytes);
}

/* ---- subarray ---- */

static int check_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes,
                          const int64_t *starts, struct brg_error *err)
{
    if (ndims < 1)
        return brg_error_set(err, -EINVAL, "subarray: ndims is %d", ndims);
    for (int d = 0; d < ndims; d++) {
        if (sizes[d] < 1)
            return brg_error_set(err, -EINVAL, "subarray: size of dimension %d is %lld", d,
                                 (long long)sizes[d]);
        if (subsizes[d] < 1 || subsizes[d] > sizes[d])
            return brg_error_set(err, -EINVAL,
                                 "subarray: subsize of dimension %d is %lld, of a size of %lld", d,
                                 (long long)subsizes[d], (long long)sizes[d]);
        if (starts[d] < 0 || starts[d] > sizes[d] - subsizes[d])
            return brg_error_set(err, -EINVAL,
                                 "subarray: start of dimension %d is %lld; %lld of %lld elements "
                                 "are asked for",
                                 d, (long long)starts[d], (long long)subsizes[d],
                                 (long long)sizes[d]);
    }
    return 0;
}

int type_subarray(int ndims, const int64_t *sizes, const int64_t *subsizes, const int64_t *starts,
                  enum type_order order, const struct type *old, struct type **out,
                  struct brg_error *err)
{
    int rc = check_subarray(ndims, sizes, subsizes, starts, err);
    if (rc)
        return rc;
    struct growing g = begin(old);
    for (int i = 0; rc == 0 && i < ndims; i++) {
        int d = order == TYPE_ORDER_C ? ndims - 1 - i : i;
        rc = check_room(&g, sizes[d]);
        if (rc == 0)
            rc = repeat(&g, subsizes[d], g.step);
        g.at += starts[d] * g.step;
        g.step *= sizes[d];
    }
    return finish("subarray", &g, rc, out, err);
}

/* ---- darray ---- */

/* One dimension: process `rank` of `processes` has every `processes`-th block of `block`. */
struct share {
    int64_t size, block, processes, rank;
};

static int share_of(int d, int64_t size, enum type_distribution how, int64_t argument,
                    int processes, struct share *out, struct brg_error *err)
{
    int64_t block = argument;
    if (size < 1)
        return brg_error_set(err, -EINVAL, "darray: size of dimension %d is %lld", d,
                             (long long)size);
    if (processes < 1)
        return brg_error_set(err, -EINVAL, "darray: dimension %d has %d processes", d, processes);
    if (argument != TYPE_DEFAULT_ARGUMENT && argument < 1 && how != TYPE_NONE)
        return brg_error_set(err, -EINVAL,
                             "darray: argument of dimension %d's distribution is %lld", d,
                             (long long)argument);
    if (how == TYPE_NONE && processes != 1)
        return brg_error_set(err, -EINVAL,
                             "darray: dimension %d is not distributed, but has %d processes", d,
                             processes);
    if (how == TYPE_NONE)
        block = size;
    else if (argument == TYPE_DEFAULT_ARGUMENT)
        block = how == TYPE_CYCLIC ? 1 : (size - 1) / processes + 1;
    if (block > size) /* a longer one is the same */
        block = size;
    if (how == TYPE_BLOCK && (size - 1) / block >= processes)
        return brg_error_set(err, -EINVAL,
                             "darray: %d blocks of %lld do not hold the %lld of dimension %d",
                             processes, (long long)block, (long long)size, d);
    *out = (struct share){.size = size, .block = block, .processes = processes};
    return 0;
}

/* Full blocks in a row, and the end of the dimension if it cuts this process's last block. */
static int repeat_share(struct growing *g, const struct share *s)
{
    wide step = g->step, period = step * s->block * s->processes; /* step * size was checked */
    int64_t full = s->size / s->block, rest = s->size % s->block;
    int64_t own = full / s->processes + (s->rank < full % s->processes);
    struct growing tail = {.data = {.layout = layout_share(g->data.layout), .at = g->data.at}};
    struct layout_maker maker = {0};
    struct placed both;
    int ends = rest && full % s->processes == s->rank;
    int rc = repeat(&tail, ends ? rest : 0, step);
    if (rc == 0)
        rc = repeat(g, s->block, step);
    if (rc == 0)
        rc = repeat(g, own, period);
    if (rc == 0)
        rc = layout_add(&maker, g->data);
    if (rc == 0 && tail.data.layout)
        rc = narrow(tail.data.at + own * period, &tail.data.at);
    if (rc == 0)
        rc = layout_add(&maker, tail.data);
    if (rc == 0)
        rc = layout_finish(&maker, &both);
    layout_drop(&maker);
    layout_release(tail.data.layout);
    if (rc)
        return rc;
    replace(g, both);
    g->at += s->rank * (wide)s->block * step;
    return 0;
}

int type_darray(int size, int rank, int ndims, const int64_t *gsizes,
                const enum type_distribution *distributions, const int64_t *arguments,
                const int *psizes, enum type_order order, const struct type *old, struct type **out,
                struct brg_error *err)
{
    int64_t processes = 1, inside = 1;
    int rc = 0;
    struct share s;
    if (ndims < 1)
        return brg_error_set(err, -EINVAL, "darray: ndims is %d", ndims);
    if (rank < 0 || rank >= size)
        return brg_error_set(err, -EINVAL, "darray: rank is %d, of %d processes", rank, size);
    for (int d = 0; d < ndims; d++) {
        if ((rc = share_of(d, gsizes[d], distributions[d], arguments[d], psizes[d], &s, err)))
            return rc;
        if ((processes *= psizes[d]) > size)
            break;
    }
    if (processes != size)
        return brg_error_set(err, -EINVAL, "darray: the grid of processes is not one of %d", size);
    struct growing g = begin(old);
    for (int i = 0; rc == 0 && i < ndims; i++) {
        int d = order == TYPE_ORDER_C ? ndims - 1 - i : i;
        inside = 1;
        for (int k = d + 1; k < ndims; k++)
            inside *= psizes[k];
        share_of(d, gsizes[d], distributions[d], arguments[d], psizes[d], &s, err);
        s.rank = rank / inside % psizes[d];
        rc = check_room(&g, gsizes[d]);
        if (rc == 0)
            rc = repeat_share(&g, &s);
        g.step *= gsizes[d];
    }
    return finish("darray", &g, rc, out, err);
}
