/* The width of a node. See width.h. */
#include "fork/width.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                    "PALS_LOCAL_SIZE", "BRIGADE_SIZE"};

int fork_width_in(const char *list, int node)
{
    while (*list) {
        char *end;
        long ranks = strtol(list, &end, 10), times = 1;
        if (end == list)
            return 0;
        if (strncmp(end, "(x", 2) == 0) {
            times = strtol(end + 2, &end, 10);
            end += *end == ')';
        }
        if (node < times)
            return ranks > 0 && ranks < 1 << 20 ? (int)ranks : 0;
        node -= (int)times;
        list = *end == ',' ? end + 1 : end;
        if (*end && *end != ',')
            return 0;
    }
    return 0;
}

int fork_width(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        if (text && atoi(text) > 0)
            return atoi(text);
    }
    const char *list = getenv("SLURM_STEP_TASKS_PER_NODE"), *node = getenv("SLURM_NODEID");
    return list && node ? fork_width_in(list, atoi(node)) : 0;
}
