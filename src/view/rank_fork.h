/* The program of a rank, and having it forked. For brigade-rank. */
#ifndef BRG_VIEW_RANK_FORK_H
#define BRG_VIEW_RANK_FORK_H

#include "view/behind_rank.h"

struct rank_program {
    const struct view *view;
    const char *file; /* that a wrapper executes (behind.h); NULL: the first word, searched */
    char *const *words;
    const char *places; /* to search: search_last.h */
    struct behind fork; /* no kind: it is not to be forked */
};

/* Whether the user wants a job to end where it would fall back. */
int rank_is_strict(void);

/* Executes the program. Returns only on failure, with errno set. */
void rank_execute(const struct rank_program *program);

/* Of a job that has just been joined: has the rank forked, and stands for it; or leaves that to
 * whom a wrapper executes. Comes back if the program is to be executed in the ordinary way. */
void rank_fork_or_leave(const struct rank_program *program);

/* The same of what a wrapper executes, with what its own brigade-rank has left: joins the job, or
 * leaves *v off. */
void rank_fork_behind(struct view *v, struct rank_program *program);

#endif
