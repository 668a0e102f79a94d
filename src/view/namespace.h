/* The namespace view: one user and mount namespace for all ranks of a job on a node.
 *
 * The first rank has a child make it: covers (cover.h) over the original, under the same paths. It
 * joins its child's, and every later rank joins that of a rank that lives; when the last process of
 * them is gone, so is all of it. One for all, because processes in different user namespaces may
 * not read each other's memory (CMA), which MPI libraries do within a node.
 *
 * What must stay true: a process that does not get in is as it was; no rank waits for another but
 * while that one makes the namespace, and then not for long; nothing outlives the ranks.
 */
#ifndef BRG_VIEW_NAMESPACE_H
#define BRG_VIEW_NAMESPACE_H

#include "view/state.h"
#include "view/view.h"

#include <sys/types.h>

/* Enters the job's namespace; makes it if no living rank is in one. `job` is the job's folder. The
 * process must have one thread, and v->slot its own pid. 0, or -errno with *why set and noted in
 * the state; the working directory stays what it was. */
int namespace_enter(const struct view *v, const char *job, enum brg_namespace_why *why);

/* Words for people. */
const char *namespace_words(enum brg_namespace_why why);

/* A step of making a namespace: a child that has called
 * unshare(CLONE_NEWUSER) is given the ids of this process, all of them if it may. 0 or -errno. */
int namespace_give_ids(pid_t child);

#endif
