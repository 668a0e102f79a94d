/* The rank processes that a template serves, and the ranks that are its children. */
#ifndef BRG_FORK_CLIENTS_H
#define BRG_FORK_CLIENTS_H

#include <poll.h>
#include <stdint.h>

enum {
    CLIENTS = 4096,    /* ranks of a node and a command */
    CLIENTS_BEFORE = 3 /* other descriptors that are polled, before theirs */
};

struct client {
    int socket; /* with the rank process; -1: it is gone */
    int peer;   /* the rank process's pid */
    int pid;    /* of its rank; 0: it has none yet */
    int turn;   /* whether it was told to send its request */
};

struct clients {
    struct client all[CLIENTS];
    struct pollfd polled[CLIENTS + CLIENTS_BEFORE];
    uint32_t n;     /* ever served: the first n of `all` are used, or were */
    uint32_t alive; /* ranks that have not ended */
    uint32_t open;  /* sockets */
};

/* A place for a new one; NULL: there are too many. */
struct client *clients_add(struct clients *c, int socket, int peer);

void clients_close(struct clients *c, struct client *one);

/* Tells rank processes of children that have stopped, gone on or ended. `complete`: no rank process
 * is still to come. How many children ended that are no ranks. */
uint32_t clients_reap(struct clients *c, int complete);

/* Does what a rank process that has a rank says; its end is the rank's. */
void clients_hear(struct clients *c, struct client *one);

#endif
