/* The template of a node: a process that has loaded what ranks share, and is forked for each.
 *
 * For the preloaded library. The program (Python, or the library itself before main) calls
 * template_wait(), and forks by itself when that says so, so that all handlers of a fork run. All
 * signals are blocked from the exec on; the child gets its rank process's mask last.
 */
#ifndef BRG_FORK_TEMPLATE_H
#define BRG_FORK_TEMPLATE_H

#include "fork/talk.h"

/* What a rank process has asked for. Valid until template_refuse() or template_forked(). */
struct template_request {
    const struct fork_request *head; /* mapped: private, so that a child may keep it */
    int file;                        /* the same, as a descriptor */
    const char *environment;         /* strings, head->n_variables of them */
};

/* Begins if `socket` (BRG_FORK_SOCKET_VARIABLE, or NULL) is for this process. Whether it
 * is a template. */
int template_begin(const char *socket);
int template_is(void);

/* For a template that executes its program anew before it has served anybody: the value of
 * BRG_FORK_SOCKET_VARIABLE for it goes into `buf`, and the socket stays open. Its length; 0 if that
 * cannot be. */
size_t template_again(char *buf, size_t size);

/* Which limits, or what else of that kind, it has set for itself since it was started, in words;
 * NULL: none. */
const char *template_changed(void);

/* Whether something besides 0 to 2 and its socket is open: in words, then. */
int template_left_open(char *words, size_t size);

/* Where to write what ranks share, in bytes, once: a second after one was forked and no other. */
void template_tell_saved(uint64_t *bytes);

/* Waits for a request that can be served. 1; or 0 when no more will come, and the process is to
 * end. The first call lets go of what the rank process that started this one has open. */
int template_wait(struct template_request *request);

/* Before the first wait: how many twins (twins.h) are to be forked. Then, in the template, that one
 * was; in the twin, which goes on to wait. */
uint32_t template_twins(void);
void template_twin_forked(void);
void template_become_twin(void);

/* Refuses the request, or all that will come. */
void template_refuse(const char *why);
void template_refuse_all(const char *why);

/* In the template, after the fork: 0 or the child. Negative: the fork failed, with that errno. */
void template_forked(int pid);

/* In the child: becomes the rank. Ends the process if that fails: the rank process then starts the
 * program itself. Does all but let signals in: template_begin_rank(), after what the program has
 * to do in the child. `environ` is the rank's. */
void template_child(void);
void template_begin_rank(void);

#endif
