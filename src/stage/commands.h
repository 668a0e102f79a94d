/* The commands of brigade-stage, after their options have been read. */
#ifndef BRG_STAGE_COMMANDS_H
#define BRG_STAGE_COMMANDS_H

#include <signal.h>
#include <stdint.h>

#include "stage/dead.h"
#include "stage/folder.h"
#include "stream/net.h"

#define EXIT_NOT_STAGED 3

struct put_options {
    const char *image, *base;
    const char *topology; /* a file, "none", or NULL: what Slurm tells */
    struct folder_job job;
    uint32_t readers;
    uint32_t workers; /* 0: chosen from the processors allowed */
    uint32_t segment_bytes;
    uint64_t memory_bytes;  /* that the image may take of a node; UINT64_MAX: no limit */
    int progress_fd;        /* -1: none */
    struct dead_known dead; /* for older jobs, found on the way */
    uint64_t timeout_ns;
    uint64_t start_ns, ready_ns; /* CLOCK_MONOTONIC: main() began, MPI had started */
};

struct join_options {
    const char *id, *base;
    const char *incoming; /* make the node's folder, and room for what is carried under this name;
                             NULL: only look */
    struct folder_job job;
};

struct drop_options {
    const char *id, *job, *base;
    const char *also; /* jobs of that image whose names begin like this end too; may be NULL */
    int keep;
    struct dead_known dead;
};

struct clean_options {
    const char *base;
    struct dead_known known; /* idle_s: a younger job's ranks may not have started yet */
    int dry_run, all;        /* all: also images that --keep has left, and standing jobs */
};

/* The signal that asked this process to end, or 0. */
extern volatile sig_atomic_t put_interrupted;

/* Collective over net. Rank 0 prints the JSON object. Returns the exit code. When messages may
 * still be under way (*stuck), the net must be aborted, not finished. */
int put_run(const struct put_options *options, struct stream_net *net, int *stuck);

/* Collective over net, before put_run: waits until rank 0 has read a line of standard input, which
 * takes the place of o->job.changed on every node. Without a time limit; a signal ends it.
 * Returns 0, or -ECANCELED if the input ended, the line was no list, or a signal came: rank 0's
 * *err says which. */
int put_hear(struct put_options *o, struct stream_net *net, int *stuck, struct brg_error *err);

/* The numbers of "12,57,": `out` has room for as many as there are commas, and one. 0 or -1. */
int put_numbers(const char *text, uint32_t *out, size_t *n);

/* Says as put_run does that it failed, before it began: there is no MPI to begin with. Each process
 * says it, because none knows of the others. */
void put_no_mpi(const char *reason);

/* The same, of an image that was not asked for, and why. */
void put_not_wanted(const char *why);

/* Adds a job to what stands on this node. Prints one JSON line. Returns the exit code. */
int join_run(const struct join_options *options);

/* Prints JSON lines for this node. Returns the exit code. */
int drop_run(const struct drop_options *options);

/* Removes from this node what dead jobs of this user have left. JSON lines as drop_run. */
int clean_run(const struct clean_options *options);

#endif
