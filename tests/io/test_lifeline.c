/* Neighbours reach each other, and nobody else; a death is told from leaving in good order. */
#include "claim.h"
#include "world/lifeline.h"

#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NODES 4
#define LIMIT_NS UINT64_C(10000000000)

enum way {
    KILLED,
    FORKED, /* is killed, and a process that it has forked lives on */
    FAREWELL,
    TELLS /* that rank 77 died, and leaves without more */
};

static struct shared {
    _Atomic int ready, connected[NODES];
    _Atomic int go;
    struct lifeline_card cards[NODES];
    int news[NODES], side[NODES];
    uint32_t rank[NODES];
    pid_t sleeper;
} * shared;

static void wait_until(_Atomic int *counter, int value)
{
    while (*counter < value)
        usleep(1000);
}

static void watch(struct lifeline *l, int node)
{
    for (int tries = 0; tries < 500 && !shared->news[node]; tries++) {
        usleep(1000);
        shared->news[node] = lifeline_look(l, &shared->side[node], &shared->rank[node]);
    }
}

static int be_node(int node, enum way way)
{
    struct lifeline l;
    lifeline_start(&l);
    shared->cards[node] = l.card;
    shared->ready++;
    wait_until(&shared->ready, NODES);
    lifeline_connect(&l, &shared->cards[(node + 1) % NODES], LIMIT_NS);
    shared->connected[node] = 1 + (l.left >= 0) + (l.right >= 0);
    shared->ready++;
    wait_until(&shared->ready, 2 * NODES);
    if (node != 1) {
        wait_until(&shared->go, 1);
        watch(&l, node);
        lifeline_close(&l);
        return 0;
    }
    if (way == FAREWELL)
        lifeline_close(&l);
    if (way == TELLS)
        lifeline_tell(&l, 77);
    if (way == FORKED) {
        pid_t pid = fork();
        while (pid == 0)
            pause();
        shared->sleeper = pid;
    }
    shared->go = 1;
    raise(SIGKILL);
    return 1;
}

static void run(enum way way)
{
    pid_t pids[NODES];
    *shared = (struct shared){.ready = 0};
    for (int node = 0; node < NODES; node++)
        if ((pids[node] = fork()) == 0)
            _exit(be_node(node, way));
    for (int node = 0; node < NODES; node++)
        waitpid(pids[node], NULL, 0);
    if (shared->sleeper)
        kill(shared->sleeper, SIGKILL);
    for (int node = 0; node < NODES; node++)
        CHECK(shared->connected[node] == 3, "way %d: node %d has %d connections", way, node,
              shared->connected[node] - 1);
}

static void the_neighbours_of_one_that_is_killed_know_its_side(enum way way)
{
    run(way);
    CHECK(shared->news[0] == LIFELINE_ENDED && shared->side[0] == 1, "%d at %d", shared->news[0],
          shared->side[0]);
    CHECK(shared->news[2] == LIFELINE_ENDED && shared->side[2] == -1, "%d at %d", shared->news[2],
          shared->side[2]);
    CHECK(shared->news[3] == 0, "%d: the one that is no neighbour", shared->news[3]);
}

static void leaving_in_good_order_is_no_news(void)
{
    run(FAREWELL);
    for (int node = 0; node < NODES; node++)
        CHECK(shared->news[node] == 0, "node %d: %d", node, shared->news[node]);
}

static void a_word_comes_before_the_end_of_who_said_it(void)
{
    run(TELLS);
    for (int node = 0; node <= 2; node += 2)
        CHECK(shared->news[node] == LIFELINE_DEATH && shared->rank[node] == 77, "node %d: %d of %u",
              node, shared->news[node], shared->rank[node]);
}

/* Another process listens at the port of the card, as on a machine with the same address. */
static void a_stranger_is_not_taken_for_the_neighbour(void)
{
    struct lifeline l, stranger;
    lifeline_start(&l);
    lifeline_start(&stranger);
    struct lifeline_card card = stranger.card;
    card.call++;
    card.answer++;
    pid_t pid = fork();
    if (pid == 0) {
        lifeline_connect(&stranger, &l.card, UINT64_C(1000000000));
        _exit(stranger.left >= 0);
    }
    close(stranger.listener);
    lifeline_connect(&l, &card, UINT64_C(500000000));
    int status;
    waitpid(pid, &status, 0);
    CHECK(l.right < 0, "connected to a stranger");
    CHECK(WEXITSTATUS(status) == 0, "the stranger believes it");
    lifeline_close(&l);
}

/* Processor time tells a wait from a busy loop, however slow the machine. */
static void a_stranger_who_says_too_little_keeps_nobody_busy(int leaves)
{
    static const struct lifeline_card nobody;
    struct lifeline l;
    lifeline_start(&l);
    struct sockaddr_in6 at = {.sin6_family = AF_INET6,
                              .sin6_port = htons(l.card.port),
                              .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int fd = socket(AF_INET6, SOCK_STREAM, 0);
    if (connect(fd, (void *)&at, sizeof at) || send(fd, "abc", 3, 0) != 3)
        printf("no IPv6 here\n");
    if (leaves)
        shutdown(fd, SHUT_WR);
    clock_t before = clock();
    lifeline_connect(&l, &nobody, UINT64_C(1000000000));
    double took_s = (double)(clock() - before) / CLOCKS_PER_SEC;
    CHECK(took_s < 0.2, "%.3f processor seconds in one second; leaves: %d", took_s, leaves);
    close(fd);
    lifeline_close(&l);
}

static void where_nobody_can_be_called_there_is_none(void)
{
    struct lifeline l;
    static const struct lifeline_card nobody;
    lifeline_start(&l);
    lifeline_connect(&l, &nobody, UINT64_C(50000000));
    int side;
    uint32_t rank;
    CHECK(l.left < 0 && l.right < 0 && lifeline_look(&l, &side, &rank) == 0, "a connection");
    lifeline_tell(&l, 1);
    lifeline_close(&l);
}

int main(void)
{
    alarm(60);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    the_neighbours_of_one_that_is_killed_know_its_side(KILLED);
    the_neighbours_of_one_that_is_killed_know_its_side(FORKED);
    leaving_in_good_order_is_no_news();
    a_word_comes_before_the_end_of_who_said_it();
    a_stranger_is_not_taken_for_the_neighbour();
    a_stranger_who_says_too_little_keeps_nobody_busy(0);
    a_stranger_who_says_too_little_keeps_nobody_busy(1);
    where_nobody_can_be_called_there_is_none();
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
