/* What the parts of `put` share: one process's view of one staging. */
#ifndef BRG_STAGE_PUT_H
#define BRG_STAGE_PUT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#include "brigade/error.h"
#include "image/format.h"
#include "stage/commands.h"
#include "stage/fit.h"
#include "stage/folder.h"
#include "stage/place.h"
#include "stage/space.h"
#include "stage/tree.h"
#include "stream/relay.h"

#define PUT_MAX_WORKERS 8u
#define PUT_GRACE_NS 500000000u /* mpirun kills for good a second after its first signal */

/* What one node tells the others when something failed on it. */
struct put_failure {
    char host[64];
    char reason[1024];
    uint64_t needed, free; /* bytes; 0 and 0 when memory is not the matter */
    int64_t damaged;       /* the image itself is */
};

/* What one node tells rank 0 at the end. */
struct put_node {
    char host[64];
    uint64_t already, bytes, read_bytes, peak_bytes, took_ns;
    uint64_t read_ns, decode_ns, write_ns; /* summed over threads */
};

struct put_worker {
    void *raw;  /* one block */
    void *zstd; /* ZSTD_DCtx */
};

struct put {
    const struct put_options *options;
    struct stream_net *own_net; /* as it was started */
    struct stream_net *net;     /* in the order of the ring */
    struct place_outcome placed;
    int stuck;     /* the others do not answer: no more messages */
    int elsewhere; /* another node has failed; the next agreement will say which */

    pthread_mutex_t err_lock;
    struct brg_error err; /* the first failure here; code 0: none */
    struct space need, have;
    struct put_failure failure; /* the agreed one */

    _Alignas(8) char page[BRG_PAGE]; /* the image's header */
    char id[BRG_ID_TEXT];
    int image_fd;
    char *head; /* header, index, block table; cut to --memory by rank 0, before it goes round */
    struct fit fit; /* on rank 0 */

    struct folder folder;
    struct folder_tmp tmp;
    int already;     /* the staged folder was here */
    int all_already; /* on every node */
    int job_added;   /* to a folder that stays if we fail */
    int published;   /* by us: goes if we fail */
    struct tree tree;

    struct plan plan;
    uint32_t *firsts, *stops; /* of each segment: its first block, and the one after its last */
    uint64_t longest;         /* segment, in bytes */
    uint32_t n_workers;
    struct put_worker workers[PUT_MAX_WORKERS];
    _Atomic uint64_t read_bytes, read_ns, decode_ns, write_ns;
    _Atomic uint64_t n_read, n_taken; /* segments here; for faults */
    uint64_t n_agreed;                /* likewise */
    uint64_t progress_ns;
};

static inline const struct brg_image_header *put_header(const struct put *p)
{
    return (const struct brg_image_header *)p->page;
}

/* put_move.c: bytes through the ring. Collective. What fails here is in p->err. */
void put_move_head(struct put *p);
int put_plan_blocks(struct put *p); /* from the head; 0 or -ENOMEM */
void put_move_blocks(struct put *p);

/* Reads [offset, offset + n) of the image and counts it. 0 or -errno, with p->err set. */
int put_read_image(struct put *p, void *to, size_t n, uint64_t offset);

/* put_room.c. What fails here is in p->err. */
void put_make_room(struct put *p);

/* put_report.c */
void put_report(struct put *p, int failed, int stuck);

/* Notes a failure, unless one is noted already. Any thread. Returns code. */
int put_fail(struct put *p, const struct brg_error *err);
int put_fail_text(struct put *p, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Takes away everything this process made on its node. May be called again. */
void put_undo(struct put *p);

/* Waits for a request that was started with rc, or for the bytes of `root`. What fails is in p. */
void put_wait(struct put *p, int rc, struct stream_request *request);
void put_broadcast(struct put *p, void *bytes, size_t n, uint32_t root);

/* The settings by which p waits: signals, patience. */
struct relay_job put_patience(const struct put *p);

#endif
