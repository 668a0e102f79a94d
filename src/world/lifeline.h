/* A TCP connection from the leader of each node to that of the next: the kernel closes it when a
 * process ends, whatever the process was doing, so that a rank which nobody shares a node with does
 * not die unseen, and none that merely computes is taken for dead. A process that a rank forks
 * lets go of the connections, or they would outlive the rank; one that it makes by _Fork or clone,
 * or while they are being made, keeps them until it ends or executes another program.
 *
 * Where no connection can be made (a firewall, no network) there is none: then such a death is seen
 * only if MPI says so. Nothing goes over it but a word of a death, and a farewell. Whoever leaves
 * because of a death says whose it was, so that nobody takes the leaving for the cause. */
#ifndef BRG_IO_LIFELINE_H
#define BRG_IO_LIFELINE_H

#include <stdint.h>

/* How a node can be called; plain bytes, for the node before it. */
#define LIFELINE_ADDRESSES 8
struct lifeline_card {
    uint64_t call, answer; /* random: who calls knows the one, who is called the other */
    uint16_t port;         /* of the machine's byte order; 0: cannot be called */
    uint16_t n_addresses;
    struct {
        uint16_t family;
        unsigned char address[16];
    } addresses[LIFELINE_ADDRESSES];
};

struct lifeline {
    int listener;
    int left, right; /* connections, or -1 */
    struct lifeline_card card;
    struct lifeline *next; /* of those that a forked process must let go */
};

/* Local. Opens a listener; `card` is for the left neighbour. `l` stays where it is until
 * lifeline_close. */
void lifeline_start(struct lifeline *l);

/* All nodes at the same time: calls the right neighbour, whose card it is, is called by the left
 * one. Ends when both are done or after limit_ns; the listener is closed. One side may believe in a
 * connection that the other has given up: lifeline_forget it. */
void lifeline_connect(struct lifeline *l, const struct lifeline_card *right, uint64_t limit_ns);

/* Local. The connection of that side (-1 or 1) is none. */
void lifeline_forget(struct lifeline *l, int side);

/* Local. What the neighbours say: 0 nothing; LIFELINE_ENDED: the process of that side, -1 left or 1
 * right, ended without lifeline_close; LIFELINE_DEATH: `rank` has died. Each is told once. */
enum lifeline_news {
    LIFELINE_ENDED = 1,
    LIFELINE_DEATH
};
int lifeline_look(struct lifeline *l, int *side, uint32_t *rank);

/* Local. Tells both neighbours that this rank has died. */
void lifeline_tell(struct lifeline *l, uint32_t rank);

/* Local. In good order: the neighbours take it for no death. */
void lifeline_close(struct lifeline *l);

#endif
