/* What the public calls share. */
#ifndef BRG_IO_FILE_H
#define BRG_IO_FILE_H

#include "drain/drain.h"
#include "move/early.h"
#include "move/hull.h"
#include "drain/watch.h"

/* What a rank has come for, when all meet. The least of all ranks' is done; those who came for
 * more serve it and meet again. */
enum file_action {
    FILE_WRITE = 1,
    FILE_READ,
    FILE_DEFINE, /* arrays: file_array.h */
    FILE_COMMIT,
    FILE_CLOSE
};

/* A commit under way. */
struct brg_request {
    brg_file *file; /* NULL once the outcome is known */
    drain_job *const *steps;
    unsigned step;
    int behind;               /* its steps are done by the drain's thread */
    uint64_t began_ns;        /* of brg_clock_ns */
    struct watch_sums mark;   /* of the program's calls when they were judged last */
    struct brg_error outcome; /* code 0: committed */
};

struct brg_file {
    struct io_world *world;
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    int page;             /* of the world, for the store; or -1 */
    struct drain *drain;  /* what is written goes through it */
    brg_request *spare;   /* memory for the request of a commit; NULL when the program has it */
    brg_request *request; /* the commit under way */
    struct hull
        behind; /* all that was written and may not have reached the file system's servers */
    struct hull flushed_stream; /* where this rank's stream of checksums was when it flushed */
    int busy; /* something is written behind the program's back, here or elsewhere */
    uint64_t size;
    int overlap; /* in the last write, ranks had bytes in common */
    int carried; /* rank 0 has written all that was written: it was carried there */
    int at_once; /* this rank commits, and waits until it is done */
    int flushed; /* when the ranks met for commit, what all had written was flushed */
    struct file_cost {
        enum io_transport transport; /* of its large calls; IO_AUTO: there was none */
        int long_runs, mixed;        /* mixed: they were not all of one kind */
        uint64_t spent_ns;           /* by this rank in them */
    } cost;
    struct file_early {
        int left;  /* this rank has bytes to move in the call that begins */
        int moved; /* it has written [low, high) of it */
        uint64_t low, high, began_ns;
        struct early own;     /* the request, while ranks meet for it */
        uint64_t from, until; /* of all ranks' calls that are over: not on its way to the disk */
        uint32_t turn;        /* the rank that sends it, modulo their number */
        struct brg_error failure; /* the others have not heard of it */
    } early;
    struct brg_error failure; /* code != 0: every later call fails with it */
    int committed;
    struct file_arrays *arrays; /* NULL: none, or not yet */
    struct file_index {
        int left; /* rank 0: it is still to be written; all, when they have met: the same */
        uint64_t at, bytes; /* written by rank 0 by itself, as the header is; bytes 0: it is not */
        uint64_t behind;    /* where the file ended before it */
    } index;
    brg_progress *progress; /* or NULL */
    void *progress_context;
    char explained[2048];
};

/* Local. What is said to a program that asks a file which it has not: -EBADF. */
int file_none(struct brg_error *err);

/* Local. Why the file cannot be asked for `action`: -errno. */
int file_refuse(const brg_file *f, enum file_action action, struct brg_error *err);

/* Local. How many bytes the file may have: every block of one in one piece has its checksum, in its
 * holes too. */
uint64_t file_most_bytes(const brg_file *f);

/* Of a request of bytes where buf is NULL. */
#define FILE_NO_MEMORY "there are bytes to move, but no memory: buf is NULL"

/* Local. Whether what a rank has written is seen by all others at once, and not held back. */
int file_sees_all(const brg_file *f);

/* Local. Progress of a call in which this rank moves so many bytes, for the program. */
void file_tell(const brg_file *f, uint64_t moved, uint64_t bytes);

/* Local. A failure names the file, whoever met it. */
void file_name_failure(brg_file *f);

/* Meets the other ranks with `request` until what this one came for has been done. */
int file_meet(brg_file *f, enum file_action action, const struct io_request *request,
              struct brg_error *err);

/* The same with a request that may have failed (rc) on this rank; destroys it. */
int file_bring(brg_file *f, enum file_action action, struct io_request *request, int rc,
               struct brg_error *err);

/* What the choice of a transport may go by, or NULL: run is the mean length of the call's runs. */
const struct experience *file_past(brg_file *f, enum file_action action, uint64_t run);
/* Local: a call has ended. Then, in the last agreement of a commit: a value, and what follows from
 * the least of all ranks'. */
void file_cost_call(brg_file *f, enum io_transport transport, uint64_t bytes, uint64_t run,
                    uint64_t began_ns);
int64_t file_cost_key(const brg_file *f, uint64_t commit_began_ns);
void file_cost_note(brg_file *f, int64_t least);

/* Tells those who watch the program's collective calls. */
void file_busy(brg_file *f, int busy);

/* Local, before ranks on several nodes meet for `action`: whether nothing that this rank wrote need
 * be flushed any more. It is flushed here where it commits at once; with what rank 0 alone has
 * written, its checksums are secured as well. What fails, the meeting tells. */
int file_flush_early(brg_file *f, enum file_action action);
/* Local, before a rank lets go of the file; and when others still write: what was known of a block
 * that this rank had begun to fill is forgotten, and may not stay true. */
void file_remember_stream(brg_file *f);
void file_flushed_in_vain(brg_file *f);
/* Collective: others than rank 0 write from now on. Of a file that was there, they need what rank 0
 * has copied of it, and what it knows of its checksums. */
int file_end_carrying(brg_file *f);
/* In the agreement (of the leaders) after which all that was written is flushed: the nodes' pages
 * of checksums become one. *unsummed: blocks must be read back. 0 or -errno of the net. */
int file_join_pages(brg_file *f, int *unsummed);

/* Ends the commit under way, if there is one; its request stays, with the outcome, which is
 * returned. */
int file_finish_request(brg_file *f, struct brg_error *err);

#endif
