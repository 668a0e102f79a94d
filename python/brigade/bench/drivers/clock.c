/* One clock for all nodes: rank 0's monotonic clock, as each node's first rank finds it.
 *
 * First starts and last ends of different nodes are compared, and clocks of nodes differ by more
 * than a phase may take. Each node's first rank asks rank 0 for the time a few times, and believes
 * the answer that came soonest: it is wrong by half of that round trip at most. Ranks of a node
 * share its clock, and the difference.
 */
#define _POSIX_C_SOURCE 200809L
#include <time.h>

#include "clock.h"

enum {
    ROUNDS = 12,
    TAG = 7
};

static double difference;

static double here(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double now(void)
{
    return here() + difference;
}

static void answer(MPI_Comm leaders, int from)
{
    for (int i = 0; i < ROUNDS; i++) {
        MPI_Recv(NULL, 0, MPI_BYTE, from, TAG, leaders, MPI_STATUS_IGNORE);
        double time = here();
        MPI_Send(&time, 1, MPI_DOUBLE, from, TAG, leaders);
    }
}

static void ask(MPI_Comm leaders)
{
    double soonest = 0, time;
    for (int i = 0; i < ROUNDS; i++) {
        double before = here();
        MPI_Send(NULL, 0, MPI_BYTE, 0, TAG, leaders);
        MPI_Recv(&time, 1, MPI_DOUBLE, 0, TAG, leaders, MPI_STATUS_IGNORE);
        double after = here(), took = after - before;
        if (i == 0 || took < soonest) {
            soonest = took;
            difference = time - (before + after) / 2;
        }
    }
}

void clock_agree(MPI_Comm comm)
{
    MPI_Comm node, leaders;
    int rank, on_node;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &on_node);
    MPI_Comm_split(comm, on_node ? MPI_UNDEFINED : 0, rank, &leaders);
    if (leaders != MPI_COMM_NULL) {
        int number, nodes;
        MPI_Comm_rank(leaders, &number);
        MPI_Comm_size(leaders, &nodes);
        for (int i = 1; number == 0 && i < nodes; i++)
            answer(leaders, i);
        if (number)
            ask(leaders);
        MPI_Comm_free(&leaders);
    }
    MPI_Bcast(&difference, 1, MPI_DOUBLE, 0, node);
    MPI_Comm_free(&node);
}
