/* Who writes which windows of a call: arithmetic only, the same on every rank. */
#ifndef BRG_IO_PLAN_H
#define BRG_IO_PLAN_H

#include "move/request.h"
#include "store/store.h"
#include "world/experience.h"

#define PLAN_MAX_WRITERS 1024u

/* What the ranks agreed on when they met for a call. */
struct io_extent {
    uint64_t low, high; /* hull of all bytes: [low, high) */
    uint64_t run;       /* the least, over ranks with bytes, of the mean length of their runs */
    uint32_t grain;     /* all runs begin and end on a multiple of 1 << grain */
    uint32_t readers;   /* plan_readers, of what is read */
};

/* How a file lies on its servers, as far as a plan goes by it. */
struct plan_place {
    uint64_t stripe_bytes; /* a power of two */
    uint64_t lock_bytes;   /* what one node may write at a time, others wait: a power of two; 0: of
                              any length, or nothing is written */
    int writes;
    int one_stream; /* one reader is faster than several, where bytes come from a disk */
};

/* The ranks, as struct io_world has them. */
struct plan_ranks {
    uint32_t size, n_nodes;
    const uint32_t *order;         /* [size]; NULL: as they are numbered */
    uint64_t room_bytes;           /* of a node's area; at least two smallest segments */
    const struct experience *past; /* of transports with such files, or NULL */
};

/* Windows are numbered from the beginning of the file: window w holds bytes [w * window_bytes,
 * (w + 1) * window_bytes). */
struct io_plan {
    enum io_transport transport; /* never IO_AUTO */
    uint64_t low, high;          /* the extent's */
    uint32_t grain;              /* likewise */
    int is_near;                 /* few ranks of one node write a little in short runs:
                                    through few windows, used again while they are warm */
    uint64_t window_bytes;       /* a power of two, divides stripe_bytes or is a multiple of it */
    uint64_t stripe_bytes;
    uint64_t lock_bytes;                  /* 0: nobody waits for another's */
    uint32_t n_writers;                   /* == domains */
    uint32_t writers[PLAN_MAX_WRITERS];   /* rank of the writer of each domain */
    uint64_t first[PLAN_MAX_WRITERS + 1]; /* first window of each domain; [n_writers] is the end */
    char reason[256];                     /* why this transport, for people */
};

/* Whether runs of that mean length are long: moved from where they are, rather than through
 * windows in shared memory. */
int plan_is_long(uint64_t run);

/* Why a transport was taken, for people: it was asked for; what was measured in the past (NULL: not
 * known); or else by_rule. */
#define PLAN_WHY 192
void plan_why(char text[PLAN_WHY], const struct io_hints *hints, const char *by_rule,
              const struct experience *past);

/* An extent without bytes gives a plan without windows: n_writers is 0. */
void plan_make(struct io_plan *plan, const struct io_hints *hints, const struct plan_place *place,
               const struct io_extent *extent, const struct plan_ranks *ranks);

/* The same for windows that lie in the memory of their writer: room_bytes is that of one. */
void plan_blocks(struct io_plan *plan, const struct io_hints *hints, const struct plan_place *place,
                 const struct io_extent *extent, const struct plan_ranks *ranks);

/* Windows that the claims of one epoch cover, over all domains, where a node's area has room_bytes:
 * at least PLAN_MIN_CLAIMS, whatever n_nodes. A multiple of 64. */
#define PLAN_MIN_CLAIMS 64u
uint32_t plan_claims(uint64_t room_bytes, uint32_t n_nodes);
/* Bytes that these claims take in the area. */
uint64_t plan_claims_bytes(uint32_t claims, uint32_t n_nodes);

#endif
