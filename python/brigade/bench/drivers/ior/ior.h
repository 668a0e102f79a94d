/* brigade-ior: IOR's options, semantics and table, with words that show where they belong.
 *
 * A file is `segments` segments one after another; a segment is a block of each task in turn; a
 * block is moved in transfers. With -F each task has a file of its own, of its blocks alone.
 *
 *   options.c  what was asked for              check.c    what cannot be
 *   offsets.c  where each task goes; pure      words.c    what stands there; pure
 *   run.c      the phases of a test            phase.c    the transfers of one phase
 *   files.c    names, removal, clean-up        ../clock.c one clock for all nodes
 *   summary.c  figures of results; pure        report.c   what is printed; table.c, events.c
 *   job.c      of MPI, or of OpenSHMEM too     back_end.c the table of back ends:
 *   posix.c, mpiio.c, onesided.c, laminar.c, hdf5.c
 */
#ifndef IOR_H
#define IOR_H

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>

#include "clock.h"

#define WHY 1024
#define PATH_ROOM 4096
#define MAX_WAYS 16

#define FIELD_FLAG int
#define FIELD_INT int
#define FIELD_LONG int64_t
#define FIELD_SIZE int64_t
#define FIELD_TEXT const char *
#define OPTION(letter, name, other, kind, field, unless_said, help) FIELD_##kind field;
struct options {
#include "options.def"
};
#undef OPTION

struct back_end;

/* One word of -a. */
struct way {
    const struct back_end *back;
    int view;
    char name[64];   /* as written, without hints */
    char hints[512]; /* key=value:key=value */
};

struct test {
    struct options o;
    int id, nways;
    struct way ways[MAX_WAYS];
    /* from the job: the same on all ranks, but for `rank` */
    MPI_Comm comm;
    int rank, ranks, nodes, on_node0;
    int by_block; /* ranks 0 and 1 are on one node */
    int64_t signature;
    struct sample *samples; /* of all ways and repetitions: sample_of */
};

/* What is opened: the file of `as`, the rank whose blocks this one moves. */
struct target {
    const struct test *t;
    const struct way *way;
    const char *path;
    MPI_Comm comm; /* MPI_COMM_SELF with -F */
    int as, writing;
};

/* A way to move bytes. Calls return 0, or -1 with `why` (WHY bytes) saying what failed. */
struct back_end {
    const char *name, *help;
    int views;      /* it can go through a view of the file (:view, -V) */
    int own_format; /* the file has bytes of the format's own */
    int collective; /* every call is, also without -c */
    const char *(*refuse)(const struct test *t, const struct way *way); /* NULL: possible */
    /* Collective over target->comm. A file to write is made if need be, and kept with -E. */
    int (*open)(const struct target *target, void **file, char *why);
    /* Exactly `bytes` from or to `offset`. */
    int (*move)(void *file, int writing, char *buf, int64_t bytes, int64_t offset, char *why);
    int (*sync)(void *file, char *why);
    int (*close)(void *file, char *why); /* frees it in any case */
    /* Local. */
    int (*size)(const char *path, int64_t *bytes, char *why);
    int (*remove)(const char *path, char *why); /* one that is not there is no error */
};

extern const struct back_end back_end_posix, back_end_mpiio, back_end_onesided, back_end_laminar,
    back_end_hdf5;
const struct back_end *back_end_find(const char *name, int length);
void back_end_names(char *text, size_t room);
/* Always -1. */
int why_not(char *why, const char *format, ...);
int posix_size(const char *path, int64_t *bytes, char *why);
int posix_remove(const char *path, char *why);
/* Hints of -U, of the environment and of the way, as IOR takes them. */
int mpiio_hints(const struct target *target, MPI_Info info, char *why);

/* options.c: what goes before a program: the tests of a command line, alike on all ranks; NULL with
 * `why` (rank 0's file of tests included). */
struct test *options_parse(int argc, char **argv, int *ntests, char *why);
void options_help(void);

/* check.c: completes t from the job; NULL, or what cannot be. */
const char *test_check(struct test *t);

/* offsets.c: whose blocks this rank reads, as ranks from its own: when it checks what was written
 * (-W), and when it reads. */
int check_shift(const struct test *t);
int read_shift(const struct test *t, int repetition);
/* -Z: so many ranks away at least. A test in which no rank is, test_check refuses. */
int64_t least_random_shift(const struct test *t);

/* With a view, a segment is this many transfers, of which a task sees `count` from `start` on. */
struct shape {
    int64_t all, count, start;
};
struct shape view_shape(const struct target *target);
/* Where the transfer of that offset is in the task's view, in transfers. */
int64_t view_transfer(const struct target *target, int64_t offset);

struct walk {
    const struct test *t;
    int as;
    int64_t segment, transfer, count; /* the next one; transfers a segment */
    int64_t base;                     /* offset of the segment's block */
    int64_t *shuffled;                /* -z: a segment's transfers, from its begin */
    int64_t blocks;                   /* -z -z: of the file */
    uint64_t high, low;
};
/* bytes: size of the file, for -z -z. -1: no memory. */
int walk_start(struct walk *w, const struct test *t, int as, int64_t bytes);
/* The next offset, or -1 at the end. */
int64_t walk_next(struct walk *w);
void walk_restart(struct walk *w); /* at the front of the file again */
void walk_end(struct walk *w);

/* words.c. */
struct wrong {
    int64_t words, offset; /* how many, and the first */
    uint64_t expected, found;
};
struct owner {
    int rank;
    int64_t offset;
};
int packet_known(const char *packet);
int packet_compresses(const struct test *t);
void words_fill(const struct test *t, int rank, char *buf, int64_t bytes, int64_t offset);
void words_spoil(char *buf, int64_t bytes);
/* Adds to *wrong. */
void words_compare(const struct test *t, int rank, const char *buf, int64_t bytes, int64_t offset,
                   struct wrong *wrong);
/* Who wrote `word`, and where it belongs; 0: nobody. */
int word_owner(const struct test *t, uint64_t word, struct owner *owner);

/* summary.c. Seconds of a phase, first start to last end. */
struct sample {
    int writing, repetition;
    int64_t bytes; /* all ranks; 0: the phase was not done */
    double open, move, close, total, latency;
    double wall, wall_bytes; /* stoneWallingWearOut: at the deadline; bytes of a rank, the mean */
};
struct figures {
    double max, min, mean, deviation;
};
double sample_bandwidth(const struct sample *s);              /* bytes a second */
double sample_iops(const struct sample *s, int64_t transfer); /* transfers a second of `move` */
/* Of n samples, s[0], s[step] and so on, those that were done: bandwidths, transfers a second of
 * `total`, mean total. */
void summary_of(const struct sample *s, int n, int step, int64_t transfer,
                struct figures *bandwidth, struct figures *operations, double *seconds);

/* phase.c */
enum {
    OPEN_START,
    OPEN_STOP,
    MOVE_START,
    MOVE_STOP,
    CLOSE_START,
    CLOSE_STOP,
    STAMPS
};
struct phase {
    struct target target;
    int checking; /* what is read is compared */
    char *buf;
    int64_t limit; /* transfers, or 0 */
    /* results, of this rank */
    double stamps[STAMPS];
    int64_t moved, transfers;
    double wall, wall_bytes; /* seconds and bytes when the deadline was there */
    struct wrong wrong;
};
/* Opens, moves and closes; ends the job where that fails. Collective over t->comm. */
void phase_run(struct phase *p);

/* files.c. Names have PATH_ROOM bytes. */
int file_names(const struct test *t); /* how many there are in -o, A@B; each is shorter than that */
void file_name(const struct test *t, int way, int as, int repetition, char *path);
void file_make_folder(const char *path); /* -u: that of this rank's file */
/* Removes what the test has made, this rank's part of it; a barrier must be before it. */
void file_remove(const struct test *t, int way, int repetition);
/* This process removes the file if it is ended; NULL: no more. */
void file_watch(const char *path);
void file_give_up(void); /* removes it now */
_Noreturn void fail(const char *format, ...);

/* run.c: wrong words. Collective over t->comm. */
int64_t test_run(struct test *t);
struct sample *sample_of(const struct test *t, int way, int repetition, int writing);

/* report.c: called by rank 0 alone. */
void report_open(const struct test *t, int argc, char **argv); /* t: the first */
void report_test(const struct test *t);
void report_sample(const struct test *t, int way, const struct sample *s);
void report_removed(const struct test *t, int way, int repetition, double seconds);
/* What one rank found: its first wrong word, in the file of `as`. */
void report_wrong(const struct test *t, int way, int repetition, int rank, int as,
                  const struct wrong *wrong);
void report_failed(const char *text, int rank);
void report_summary(const struct test *tests, int ntests);
void warn(const char *format, ...);

#endif
