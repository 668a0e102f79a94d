/* Making and sending what a template must know of a rank process. */
#ifndef BRG_FORK_REQUEST_H
#define BRG_FORK_REQUEST_H

#include "fork/talk.h"

struct fork_open {
    int *numbers; /* of the descriptors that a program started here would inherit */
    uint32_t n;
};

/* The descriptors of this process that outlive an exec. 0 or -errno. */
int fork_list_open(struct fork_open *open);

/* Sends all of it, descriptors included, and `line`, an end of a line to the rank. 0 or -errno. */
int fork_ask(int to, int line, const struct fork_self *self, const struct fork_open *open,
             char *const *env);

#endif
