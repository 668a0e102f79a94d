/* Collective writing and reading where every rank moves its own bytes, by put and get, between its
 * memory and windows of the file in the memory of the windows' owners (docs/design/0016). */
#ifndef BRG_MOVE_ONESIDED_H
#define BRG_MOVE_ONESIDED_H

#include "drain/drain.h"
#include "move/extent.h"
#include "move/hull.h"
#include "move/request.h"
#include "pgas/pgas.h"
#include "world/world.h"
#include "store/store.h"

/* The windows of a group, for one call at a time. */
struct onesided;

/* Collective. Each rank sets five windows of at most window_bytes aside (a power of two, from
 * 4 KiB on): two that it owns, three for what goes to and comes from ranks out of reach. Only what
 * is used takes memory. The group stays open until after close. */
int onesided_open(struct pgas *pgas, uint64_t window_bytes, struct onesided **out,
                  struct brg_error *err);
/* Local. Without windows: what does not lie together is moved by the messages of docs/design/0014.
 * `pgas` is of the ranks of `world`. -ENOMEM */
int onesided_open_messages(struct pgas *pgas, struct io_world *world, struct onesided **out,
                           struct brg_error *err);
/* Collective. */
void onesided_close(struct onesided *o);
/* Local, where the group's memory ends with the group. */
void onesided_forget(struct onesided *o);

/* What calls cost this rank so far. */
struct onesided_cost {
    uint64_t rounds, meetings;
    uint64_t additions;            /* atomic */
    uint64_t near_bytes;           /* copied to or from the memory of a rank in reach */
    uint64_t far_bytes, far_moves; /* by put and get */
    uint64_t own_bytes;            /* between its memory and the file */
    uint64_t owner_bytes;          /* between its windows and the file */
    uint64_t kept_bytes;           /* read because a call left holes in a window */
};
const struct onesided_cost *onesided_cost(const struct onesided *o);

/* For people: what was chosen for the last call and why, and what that one cost, one fact a line;
 * "" before the first. Returns bytes written but for the NUL, cut at `room`. */
size_t onesided_explain(const struct onesided *o, char *text, size_t room);

struct onesided_call {
    struct onesided *o;
    const struct io_hints *hints;
    struct plan_place place;
    uint64_t size; /* of the file, as far as this rank knows: the greatest of all ranks' counts */
    int grows;     /* of a file in place: others write to it too, so that it may be longer */
    int shows;     /* what it writes is seen by other nodes when it ends */
    struct hull *behind; /* what of the file was written, by this rank alone or by calls that do
                            not, and was not shown since; changed */
    const struct brg_error *refused; /* code != 0: what keeps this rank from it, and then all; or
                                        NULL. The request is empty then. */
    struct io_store *store;
    struct drain *drain;
    const struct io_request *request; /* this rank's; may be empty */
};

/* Collective, and agreed on: 0, or the same failure on every rank.
 *
 * Of bytes that several ranks write, any rank's arrives. What earlier calls wrote is in the file.
 * *size: of the file after the call, as far as any rank knows; set on success. */
int onesided_write(const struct onesided_call *call, uint64_t *size, struct brg_error *err);
/* Bytes from *size on are left as they are in memory. */
int onesided_read(const struct onesided_call *call, uint64_t *size, struct brg_error *err);

#endif
