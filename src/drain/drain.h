/* Writing behind: a rank's bytes on their way to the store.
 *
 * With hint async, bytes go into a bounded buffer of this rank, and a thread drains it into the
 * store, in the order in which they came; a full buffer makes the writer wait. Without it, or where
 * there is no memory or no thread for it, every write goes straight to the store. The thread makes
 * no MPI calls and takes no signals. It goes no faster than hint rate, and gives way to the
 * program's collective calls (pace.h) unless the program waits for it. After the first failure
 * nothing more is written, and every later call returns that failure.
 *
 * Writes may come from any thread. All else is called by the one that uses the file. */
#ifndef BRG_IO_DRAIN_H
#define BRG_IO_DRAIN_H

#include "store/store.h"

struct drain;

/* The store outlives the drain. Takes neither a buffer nor a thread before they are needed. In two
 * steps, of which only the first can fail (NULL: no memory), or in one. */
struct drain *drain_new(void);
void drain_begin(struct drain *drain, struct io_store *store, const struct io_hints *hints);
int drain_open(struct io_store *store, const struct io_hints *hints, struct drain **drain,
               struct brg_error *err);

/* Ends the thread; what has not been written by now is lost. NULL is allowed. */
void drain_close(struct drain *drain);

/* As store_write; with hint async, `buf` may be used again and a failure may come out later. */
int drain_write(struct drain *drain, const void *buf, size_t bytes, uint64_t offset,
                struct brg_error *err);

/* Waits until nothing that was put here before lies in [low, high): what another rank then writes
 * there stays. */
int drain_clear(struct drain *drain, uint64_t low, uint64_t high, struct brg_error *err);

/* Waits until all that was put here before has been written, and shows it to other nodes
 * (store_show). */
int drain_show(struct drain *drain, struct brg_error *err);

/* Runs job(context, err) once all that came before has been written, unless something failed:
 * in the thread if `behind` or if there is one, else at once. One at a time. */
typedef int drain_job(void *context, struct brg_error *err);
void drain_run(struct drain *drain, drain_job *job, void *context, int behind);

/* Whether that job has ended, after waiting for it for at most wait_ms: 1; 0 not yet; or its
 * failure, or that of a write before it. */
int drain_ended(struct drain *drain, int wait_ms, struct brg_error *err);

/* Local: the collectives of some rank suffer; this one's own may not, if it is the late one. */
void drain_hear(struct drain *drain);

/* A line for people, or "" where nothing went through the thread: what was drained, how long that
 * took, how long it was held back and why. Returns bytes written but for the NUL, cut at `room`. */
size_t drain_explain(struct drain *drain, char *text, size_t room);

/* Bytes that wait to be written. */
uint64_t drain_held(struct drain *drain);

#endif
