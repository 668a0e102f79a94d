/* A rank process's request, as it comes in: a file in memory, an end of the line to its rank, and
 * its descriptors, in as many messages as they take.
 */
#ifndef BRG_FORK_INCOMING_H
#define BRG_FORK_INCOMING_H

#include "fork/template.h"

struct incoming {
    struct template_request request;
    int line;    /* to the rank process, for the rank; -1 */
    int *passed; /* request.head->n_descriptors of them, in memory of its own */
    size_t passed_bytes;
};

#define INCOMING_NONE ((struct incoming){.request = {.file = -1}, .line = -1})

/* Takes what came with the first message, and receives what follows from `socket`. 0, or -errno:
 * then what has come is there to be forgotten. */
int incoming_take(struct incoming *in, int socket, int file, int line);

/* In the template, when the rank has been forked, or will not be: its descriptors, and the rest. */
void incoming_close_passed(struct incoming *in);
void incoming_forget(struct incoming *in);

#endif
