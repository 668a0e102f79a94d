/* Having a rank forked. See rank_fork.h. */
#include "view/rank_fork.h"
#include "base/text.h"
#include "fork/begin.h"
#include "fork/width.h"
#include "view/exec.h"
#include "view/stoppable.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int rank_is_strict(void)
{
    const char *strict = getenv("BRIGADE_STRICT");
    return strict && text_same(strict, "1");
}

void rank_execute(const struct rank_program *p)
{
    if (p->file)
        exec_path(p->view, p->file, p->words, environ, execve);
    else
        exec_search(p->view, *p->words, p->places, p->words, environ, execve);
}

/* In the process that becomes the template. */
static void execute(void *context)
{
    rank_execute(context);
}

static const char *file_of(const struct rank_program *p)
{
    return p->file ? p->file : *p->words;
}

static const char *doubt(void *context)
{
    struct rank_program *p = context;
    char *const *words = p->words;
    const char *file = file_of(p);
    if (!text_same(p->fork.kind, "python"))
        return stoppable(p->view, file, p->places);
    const char *why = stoppable_python(p->view, file, &p->words, p->places);
    if (p->words != words)
        p->file = NULL;
    return why;
}

static void note_refusal(const struct view *v, const char *why)
{
    struct brg_fork *f = &v->state->fork;
    v->slot->forked = BRG_FORK_REFUSED;
    __atomic_fetch_add(&f->refused, 1, __ATOMIC_RELAXED);
    if (__atomic_exchange_n(&f->taken, 1, __ATOMIC_RELAXED) == 0)
        snprintf(f->why, sizeof f->why, "%s", why);
}

/* Has the rank forked, and stands for it; comes back if it is to be started in the ordinary way. */
static void fork_rank(const struct rank_program *p)
{
    char folder[PATH_MAX];
    struct rank_program template = *p;
    struct text t = text_in(folder, sizeof folder);
    const char *state = getenv("BRIGADE_STATE");
    if (!state || p->view->mode != VIEW_SERVE)
        return;
    text_bytes(&t, state, strlen(state) - strlen("/state"));
    struct fork_job job = {.folder = folder,
                           .kind = p->fork.kind,
                           .pins = p->fork.pins,
                           .program = p->words,
                           .n_local = p->file ? behind_width(&p->fork) : fork_width(),
                           .only_one = p->file != NULL,
                           .doubt = doubt,
                           .execute = execute,
                           .context = &template};
    const char *why = fork_stand_in(&job);
    if (!why)
        return;
    note_refusal(p->view, why);
    if (rank_is_strict()) {
        fprintf(stderr, "brigade: strict: --fork: %s\n", why);
        exit(125);
    }
}

/* What seems to be the program, and is one more wrapper: what starts a Python, by the same name. */
static int is_wrapper(const struct rank_program *p)
{
    return p->view->mode == VIEW_SERVE && text_same(p->fork.kind, "python") &&
           !stoppable_is_python(p->view, file_of(p), p->words, p->places);
}

void rank_fork_or_leave(const struct rank_program *p)
{
    if (p->fork.word && (!behind_is(p->view, &p->fork, *p->words, p->words) || is_wrapper(p)))
        behind_leave(p->view, &p->fork, file_of(p), p->words);
    else
        fork_rank(p);
}

/* What the wrapper's brigade-rank has set up is there. Whether it could be joined. */
static int rejoin(struct view *v, struct rank_program *p)
{
    const char *stage = getenv("BRIGADE_STAGE"), *state = getenv("BRIGADE_STATE");
    int64_t slot = text_to_number(getenv("BRIGADE_SLOT"), -1);
    if (behind_take(&p->fork) < 0 || !stage || !state || slot < 0 ||
        view_open_stage(v, stage, state, 0) < 0)
        return 0;
    v->slot = brg_state_slot(v->state, (uint32_t)slot);
    v->strict = rank_is_strict();
    return 1;
}

void rank_fork_behind(struct view *v, struct rank_program *p)
{
    if (!rejoin(v, p))
        v->mode = VIEW_OFF;
    else if (behind_is_traced())
        return;
    else if (!behind_is(v, &p->fork, p->file, p->words) || is_wrapper(p))
        behind_leave(v, &p->fork, p->file, p->words);
    else
        fork_rank(p);
}
