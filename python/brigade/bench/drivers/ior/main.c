/* brigade-ior OPTIONS, under any MPI launcher. Exit status: 0; 1 if a word was wrong or a call
 * failed; 2 if the options cannot be. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ior.h"
#include "job.h"

/* The first `tasks` ranks take part (-N). */
static void take_part(struct test *t)
{
    int rank, size, on_node, leader, nodes;
    char first[256] = "", host[256] = "";
    MPI_Comm node;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (t->o.tasks > size && rank == 0)
        warn("%d tasks were asked for (-N), and there are %d", t->o.tasks, size);
    t->ranks = t->o.tasks > 0 && t->o.tasks < size ? t->o.tasks : size;
    t->rank = rank;
    MPI_Comm_split(MPI_COMM_WORLD, rank < t->ranks ? 0 : MPI_UNDEFINED, rank, &t->comm);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &on_node);
    MPI_Comm_size(node, &t->on_node0);
    leader = on_node == 0;
    MPI_Allreduce(&leader, &nodes, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(&t->on_node0, 1, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Comm_free(&node);
    gethostname(host, sizeof host - 1);
    memcpy(first, host, sizeof first);
    MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
    t->by_block = strcmp(first, host) == 0;
    MPI_Bcast(&t->by_block, 1, MPI_INT, size > 1, MPI_COMM_WORLD);
    t->nodes = t->o.nodes > 0 ? t->o.nodes : nodes;
    t->on_node0 = t->o.tasks_on_node0 > 0 ? t->o.tasks_on_node0 : t->on_node0;
}

static int refused(const char *why)
{
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        fprintf(stderr, "brigade-ior: %s\n", why);
    job_end();
    return 2;
}

static int asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return 1;
    return 0;
}

/* All tests, one after another; those who take no part wait. */
static int64_t run_all(struct test *tests, int ntests)
{
    int64_t wrong = 0;
    for (int i = 0; i < ntests; i++) {
        if (tests[i].comm != MPI_COMM_NULL)
            wrong += test_run(&tests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    char why[WHY] = "";
    int ntests, rank;
    job_start(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (asks_for_help(argc, argv)) {
        if (rank == 0)
            options_help();
        job_end();
        return 0;
    }
    struct test *tests = options_parse(argc, argv, &ntests, why);
    if (!tests)
        return refused(why);
    for (int i = 0; i < ntests; i++) {
        take_part(&tests[i]);
        const char *no = test_check(&tests[i]);
        if (no)
            return refused(no);
    }
    clock_agree(MPI_COMM_WORLD);
    if (rank == 0)
        report_open(tests, argc, argv);
    int64_t wrong = run_all(tests, ntests);
    if (rank == 0)
        report_summary(tests, ntests);
    job_end();
    return wrong ? 1 : 0;
}
