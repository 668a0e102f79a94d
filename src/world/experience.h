/* What transports have cost so far, and which to take next. Pure.
 *
 * With transport=auto a rule chooses for the first file (plan.c). Every file of some size is a
 * measurement: seconds of its writes and of its commit, to the slowest rank, over its bytes. The
 * next files of the same communicator on the same file system try the other candidates once each;
 * from then on the fastest is taken, and its figure kept up to date. All ranks note the same
 * figures, so they choose alike. */
#ifndef BRG_IO_EXPERIENCE_H
#define BRG_IO_EXPERIENCE_H

#include "world/hints.h"

/* Smaller files tell more about the moment than about the transport. */
#define EXPERIENCE_LEAST_BYTES (UINT64_C(16) << 20)
#define EXPERIENCE_PLACES 8u

struct experience {
    double bytes_s[IO_ROTATE + 1]; /* by transport; 0: not tried */
};

/* Of a communicator: by file system and by whether runs are long. */
struct experiences {
    struct experience_place {
        uint64_t device;
        int long_runs;
        struct experience experience;
    } places[EXPERIENCE_PLACES];
    unsigned n, next; /* the oldest place is given away when all are taken */
};

/* The experience with a place, a new one if there is none. Never NULL. */
struct experience *experience_of(struct experiences *all, uint64_t device, int long_runs);

/* The same, or NULL if there is none: for one rank alone, where others do not ask. */
struct experience *experience_peek(struct experiences *all, uint64_t device, int long_runs);

/* `by_rule` until it was tried, then each other candidate once, then the fastest. candidates: bits
 * 1 << transport, among them by_rule's. */
enum io_transport experience_choose(const struct experience *experience, enum io_transport by_rule,
                                    unsigned candidates);

/* A file of so many bytes took so many seconds. Small ones are not noted. */
void experience_note(struct experience *experience, enum io_transport transport, uint64_t bytes,
                     double seconds);

/* For people: "direct 410 MB/s, rotate 380 MB/s", or "". */
void experience_tell(const struct experience *experience, char *text, size_t size);

#endif
