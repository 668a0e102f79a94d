/* Which groups of ranks are of this job alone, as an MPI tells it; and without memory to ask. */
#include <stddef.h>
#include <stdlib.h>

static int no_memory;

static void *calloc_or_not(size_t n, size_t bytes)
{
    return no_memory ? NULL : calloc(n, bytes);
}

#define calloc calloc_or_not
#include "../../src/mpi/openmpi.c"

#include "../claim.h"

/* A group is a list of numbers of ranks that ends with -1. */
static int size_of(group_t group, int *n)
{
    const int *list = group;
    for (*n = 0; list[*n] >= 0; ++*n)
        ;
    return 0;
}

static int translate(group_t group, int n, const int *ranks, group_t of, int *found)
{
    const int *list = group, *other = of;
    for (int i = 0; i < n; i++) {
        found[i] = UNDEFINED;
        for (int j = 0; other[j] >= 0; j++)
            found[i] = other[j] == list[ranks[i]] ? j : found[i];
    }
    return 0;
}

static int world[] = {0, 1, 2, 3, -1}, some[] = {3, 1, -1}, spawned[] = {1, 7, -1}, none[] = {-1};

static void ranks_of_the_world_in_any_order_are_no_others(void)
{
    CHECK(!has_others(world, world), "all");
    CHECK(!has_others(some, world), "some, in another order");
    CHECK(!has_others(none, world), "none");
}

static void one_rank_of_another_job_is_enough(void)
{
    CHECK(has_others(spawned, world), "one spawned");
    CHECK(has_others(world, some), "the world has more than some");
}

static void without_memory_to_ask_it_is_not_taken_for_certain(void)
{
    no_memory = 1;
    CHECK(has_others(world, world), "no memory");
    no_memory = 0;
}

int main(void)
{
    files.Group_size = size_of;
    files.Group_translate_ranks = translate;
    ranks_of_the_world_in_any_order_are_no_others();
    one_rank_of_another_job_is_enough();
    without_memory_to_ask_it_is_not_taken_for_certain();
    return failures != 0;
}
