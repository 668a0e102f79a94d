/* See extent.h. */
#include "move/extent.h"

void extent_say(const struct io_request *r, int64_t v[EXTENT_VALUES])
{
    v[EXTENT_LOW] = r->bytes ? (int64_t)r->low : INT64_MAX;
    v[EXTENT_HIGH] = -(int64_t)r->high;
    v[EXTENT_RUN] = r->bytes ? (int64_t)request_mean_run(r) : INT64_MAX;
    v[EXTENT_GRAIN] = r->bytes ? request_grain(r) : INT64_MAX;
}

struct io_extent extent_heard(const int64_t v[EXTENT_VALUES])
{
    return (struct io_extent){.low = (uint64_t)v[EXTENT_LOW],
                              .high = (uint64_t)-v[EXTENT_HIGH],
                              .run = (uint64_t)v[EXTENT_RUN],
                              .grain = (uint32_t)v[EXTENT_GRAIN]};
}

void extent_cut(struct io_extent *extent, uint64_t end)
{
    uint32_t grain = (uint32_t)__builtin_ctzll(end | UINT64_C(1) << 31);
    if (extent->high <= end)
        return;
    extent->high = end;
    if (grain < extent->grain)
        extent->grain = grain;
}
