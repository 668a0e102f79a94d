/* brigade-rank: starts a rank's program under the view.
 *
 *   brigade-rank --record DIR [--watch SALT] [--python-view DIR] [--] PROGRAM ARGS...   a trial
 *   brigade-rank --job ID [--view LIST] [--fork KIND] [--strict] [--] PROGRAM ARGS...     a job
 *     [--search-last word|whole]               the launcher looks for PROGRAM there (search_last.h)
 *   brigade-rank --behind FILE -- PROGRAM ARGS...         in it, what a wrapper executes (behind.h)
 *   brigade-rank --probe BASE                             what this node allows, as JSON
 *   brigade-rank --inspect PROGRAM            `joins`; `apart` if our libraries cannot reach it; or
 *                                             `contains` if it starts others in a container
 *
 * In a job it lies in the staged folder, <stage>/root/.brigade/bin, and finds the stage from its
 * own path; it takes a slot in the job's state, sets the environment of
 * docs/design/0002-start-up-contracts.md, and executes the program from node memory. Statically
 * linked, so that nothing is searched for before the program itself.
 *
 * What must stay true: whatever is wrong with the stage, the program is started plainly.
 */
#include "base/kept.h"
#include "base/search_last.h"
#include "base/static_start.h"
#include "base/sys.h"
#include "base/text.h"
#include "view/behind.h"
#include "view/handoff.h"
#include "view/look.h"
#include "view/mounts.h"
#include "view/namespace.h"
#include "view/probe.h"
#include "view/program.h"
#include "view/rank_env.h"
#include "view/rank_fork.h"
#include "view/record.h"
#include "view/trace.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

static const char usage[] =
    "usage: brigade-rank [--record DIR | --job ID] [--view namespace,interpose,python] [--strict]\n"
    "                    [--fork python|main|preinit [--fork-pins HEX] [--fork-behind WORD]]\n"
    "                    [--watch SALT] [--python-view DIR] [--search-last word|whole]\n"
    "                    [--] PROGRAM [ARGS...]\n"
    "       brigade-rank --behind FILE -- PROGRAM [ARGS...]\n"
    "       brigade-rank --probe BASE\n"
    "       brigade-rank --inspect PROGRAM\n";

struct options {
    const char *record, *watch, *job, *views, *python_view, *probe, *inspect, *behind, *last;
    struct behind fork; /* no kind: not to be forked; no word: nothing stands in front of it */
    int strict;
    char **program;
};

static const char default_views[] = "interpose,python";

/* Returns 0, or -1 if the command line is wrong. */
static int parse(char **argv, struct options *o)
{
    for (argv++; *argv && (*argv)[0] == '-'; argv++) {
        const char **value = text_same(*argv, "--record")          ? &o->record
                             : text_same(*argv, "--watch")         ? &o->watch
                             : text_same(*argv, "--job")           ? &o->job
                             : text_same(*argv, "--view")          ? &o->views
                             : text_same(*argv, "--fork")          ? &o->fork.kind
                             : text_same(*argv, "--fork-pins")     ? &o->fork.pins
                             : text_same(*argv, "--fork-behind")   ? &o->fork.word
                             : text_same(*argv, BRG_BEHIND_OPTION) ? &o->behind
                             : text_same(*argv, "--python-view")   ? &o->python_view
                             : text_same(*argv, "--search-last")   ? &o->last
                             : text_same(*argv, "--probe")         ? &o->probe
                             : text_same(*argv, "--inspect")       ? &o->inspect
                                                                   : NULL;
        if (text_same(*argv, "--")) {
            argv++;
            break;
        }
        if (text_same(*argv, "--strict"))
            o->strict = 1;
        else if (value && argv[1])
            *value = *++argv;
        else
            return -1;
    }
    o->program = argv;
    return *argv || o->probe || o->inspect ? 0 : -1;
}

/* The folder this program lies in; "" if unknown. */
static void own_folder(char *buf, size_t size)
{
    long n = sys_readlink("/proc/self/exe", buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
    char *base = (char *)text_base(buf);
    if (base > buf)
        base[-1] = '\0';
}

static int32_t rank_number(void)
{
    /* Brigade's own first: what it starts in a Slurm job's script inherits SLURM_PROCID=0. */
    static const char *const names[] = {"BRIGADE_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID",
                                        "OMPI_COMM_WORLD_RANK"};
    int64_t rank = -1;
    for (size_t i = 0; rank < 0 && i < sizeof names / sizeof *names; i++)
        rank = text_to_number(getenv(names[i]), -1);
    return rank > INT32_MAX ? -1 : (int32_t)rank;
}

/* Opens the stage that this program lies in and takes a slot. 0 or -errno. */
static int join_stage(struct view *v, const char *folder, const char *job)
{
    static const char below[] = "/root/.brigade/bin";
    char stage[PATH_MAX], state[PATH_MAX], slot_text[24];
    size_t n = strlen(folder), tail = sizeof below - 1;
    if (n <= tail || !text_same(folder + n - tail, below) || !job || !*job)
        return -ENOENT;
    struct text t = text_in(stage, sizeof stage);
    text_bytes(&t, folder, n - tail);
    t = text_in(state, sizeof state);
    text_add(&t, stage);
    text_add(&t, "/jobs/");
    text_add(&t, job);
    text_add(&t, "/state");
    int err = t.full ? -ENAMETOOLONG : view_open_stage(v, stage, state, 0);
    if (err < 0)
        return err;
    uint32_t slot = __atomic_fetch_add(&v->state->next_slot, 1, __ATOMIC_RELAXED);
    v->slot = brg_state_slot(v->state, slot);
    v->slot->rank = rank_number();
    v->slot->start_ns = sys_now_ns(CLOCK_REALTIME);
    v->slot->pid = (uint32_t)getpid();
    t = text_in(slot_text, sizeof slot_text);
    text_number(&t, slot, 10);
    if (setenv("BRIGADE_STAGE", stage, 1) || setenv("BRIGADE_STATE", state, 1) ||
        setenv("BRIGADE_SLOT", slot_text, 1))
        return -ENOMEM;
    unsetenv("BRIGADE_RECORD");
    unsetenv(BRG_RECORD_FORK);
    return 0;
}

/* The job's folder, where its state is. */
static struct text job_folder(char buf[PATH_MAX])
{
    const char *state = getenv("BRIGADE_STATE");
    struct text t = text_in(buf, PATH_MAX);
    text_bytes(&t, state, strlen(state) - strlen("/state"));
    return t;
}

/* Whether the rank sees the files that the stager saw; not if it was started in a container. */
static int sees_what_is_staged(const struct view *v)
{
    char mounts[PATH_MAX];
    const struct brg_root *home = &v->state->home;
    struct brg_root here;
    if (!home->mounts)
        return 1;
    if (root_here(&here) < 0)
        return 0;
    if (root_same(&here, home))
        return 1;
    struct text t = job_folder(mounts);
    text_add(&t, "/" BRG_MOUNTS_NAME);
    return here.dev == home->dev && here.ino == home->ino && mounts_alike(v->index, mounts);
}

/* Tells those that come of this process how to know whether they see the same files. */
static int leave_root(void)
{
    char words[ROOT_WORDS];
    struct brg_root here;
    if (root_here(&here) < 0)
        return unsetenv(BRG_ROOT_VARIABLE);
    root_words(&here, words);
    return setenv(BRG_ROOT_VARIABLE, words, 1);
}

/* What the node has mounted, for the image's builder on another host: the first rank of a node
 * leaves it. Without it the builder takes its own host's. */
static void leave_mounts(const char *folder)
{
    char path[PATH_MAX];
    struct utsname host;
    struct text t = text_in(path, sizeof path);
    if (uname(&host) != 0)
        return;
    text_add(&t, folder);
    text_add(&t, "/");
    text_add(&t, host.nodename);
    text_add(&t, ".mountinfo");
    if (!t.full)
        root_leave_mounts(AT_FDCWD, path);
}

/* A trial: what is tried until the program is found is recorded in the program's own file. */
static int record_search(struct view *v, const char *folder)
{
    char shared[64];
    uint64_t start_ns = 0;
    leave_mounts(folder);
    view_read_process(v);
    record_start_wrapper(v, folder, &start_ns);
    struct text t = text_in(shared, sizeof shared);
    text_number(&t, (uint64_t)getpid(), 10);
    text_add(&t, ".");
    text_number(&t, start_ns, 10);
    return start_ns && setenv(BRG_RECORD_SHARED, shared, 1) == 0 ? 0 : -EIO;
}

/* Enters the job's namespace if `views` ask for it. Returns the views that are left to set up. */
static const char *enter_namespace(const struct view *v, const char *views)
{
    char job[PATH_MAX];
    enum brg_namespace_why why;
    if (!rank_env_names(views, "namespace"))
        return views;
    job_folder(job);
    int err = namespace_enter(v, job, &why);
    if (err == 0)
        return views;
    if (rank_is_strict()) {
        fprintf(stderr, "brigade: strict: --view namespace: %s (%s)\n", namespace_words(why),
                strerror(-err));
        exit(125);
    }
    int interpose = rank_env_names(views, "interpose"), python = rank_env_names(views, "python");
    return interpose == python ? default_views : interpose ? "interpose" : "python";
}

static int prepare_trial(struct view *v, const struct options *o, const char *folder)
{
    char beside[PATH_MAX];
    struct text t = text_in(beside, sizeof beside);
    text_add(&t, folder);
    text_add(&t, "/../imports/site");
    unsetenv("BRIGADE_STAGE");
    unsetenv("BRIGADE_STATE");
    if (o->record[0] != '/' || t.full)
        return -EINVAL;
    if (setenv("BRIGADE_RECORD", o->record, 1) || leave_root() ||
        (o->watch ? setenv(BRG_RECORD_FORK, o->watch, 1) : unsetenv(BRG_RECORD_FORK)))
        return -ENOMEM;
    int err = rank_env_set(o->views ? o->views : default_views, folder,
                           o->python_view ? o->python_view : beside, o->watch != NULL);
    err = err < 0 ? err : record_search(v, o->record);
    if (err == 0 && !program_contains(o->program[0]) &&
        trace_inspect(o->program[0], search_last(o->last)) == BINARY_IN_PLACE) {
        unsetenv(BRG_RECORD_SHARED); /* what it becomes is another program */
        trace_trial(o->record, rank_number());
    }
    return err;
}

/* With the namespace alone nothing is injected: the program starts as it would, where its folders
 * are covered. */
static int prepare_job(struct view *v, const struct options *o, const char *folder)
{
    char libraries[PATH_MAX], python[PATH_MAX];
    int err = join_stage(v, folder, o->job ? o->job : getenv("BRIGADE_JOB"));
    if (err < 0)
        return err;
    if (!sees_what_is_staged(v)) {
        view_note_away(v);
        if (rank_is_strict()) {
            fputs("brigade: strict: a rank in a container sees other files than were staged\n",
                  stderr);
            exit(125);
        }
        return -EXDEV;
    }
    struct text lib = text_in(libraries, sizeof libraries), py = text_in(python, sizeof python);
    text_add(&lib, v->root);
    text_add(&lib, "/.brigade/lib");
    text_add(&py, v->root);
    text_add(&py, "/.brigade/python");
    const char *views = enter_namespace(v, o->views ? o->views : default_views);
    err = lib.full || py.full ? -ENAMETOOLONG
          : leave_root()      ? -ENOMEM
                              : rank_env_set(views, libraries, python, 0);
    if (err < 0)
        return err;
    v->strict = rank_is_strict();
    if (!rank_env_names(views, "namespace") || rank_env_names(views, "interpose"))
        return 0;
    v->mode = VIEW_OFF;
    if (!rank_env_names(views, "python"))
        rank_env_clear();
    return 0;
}

/* Sets the view up; returns 0, or -errno if the program is to be started plainly. */
static int prepare(struct view *v, const struct options *o)
{
    char folder[PATH_MAX];
    own_folder(folder, sizeof folder);
    if (o->strict)
        setenv("BRIGADE_STRICT", "1", 1);
    return o->record ? prepare_trial(v, o, folder) : prepare_job(v, o, folder);
}

int main(int argc, char **argv)
{
    static struct view view;
    struct options o = {0};
    (void)argc;
    static_start_show();
    kept_restore();
    if (parse(argv, &o) != 0) {
        fputs(usage, stderr);
        return 2;
    }
    if (o.inspect) {
        int joins = trace_inspect(o.inspect, search_last("word")) == BINARY_JOINS;
        return puts(program_contains(o.inspect) ? "contains" : joins ? "joins" : "apart") < 0;
    }
    if (o.probe) {
        char folder[PATH_MAX];
        own_folder(folder, sizeof folder);
        return probe_print(folder, o.probe);
    }
    struct rank_program program = {&view, o.behind, o.program, search_last(o.last), o.fork};
    if (o.behind) {
        rank_fork_behind(&view, &program);
    } else if (prepare(&view, &o) < 0) {
        view.mode = VIEW_OFF;
        rank_env_clear();
    } else if (o.fork.kind && o.job) {
        rank_fork_or_leave(&program);
    }
    rank_execute(&program);
    int err = errno;
    fprintf(stderr, "brigade-rank: %s: %s\n", o.program[0], strerror(err));
    return err == ENOENT || err == ENOTDIR ? 127 : 126;
}
