/* Hints: "key=value:key=value", from the program and from BRIGADE_IO. Pure. docs/reference/io.md
 * lists the keys, and tests compare that page with this table. */
#ifndef BRG_IO_HINTS_H
#define BRG_IO_HINTS_H

#include "brigade/io.h"

enum io_transport {
    IO_AUTO,
    IO_DIRECT,
    IO_SIMPLE,
    IO_BRIGADE,
    IO_ROTATE
};

enum io_layout {
    IO_SHARED, /* one file, plain bytes */
    IO_PARTS   /* a file a writer, and an index */
};

enum io_publish {
    IO_PUBLISH_NO, /* written in place */
    IO_PUBLISH_YES,
    IO_PUBLISH_NEW /* begins empty, whatever is there */
};

enum io_seam {
    IO_SEAM_AUTO,
    IO_SEAM_SHMEM,
    IO_SEAM_WINDOWS,
    IO_SEAM_MESSAGES
};

struct io_hints {
    enum io_transport transport;
    enum io_layout layout;  /* layout=shared|parts */
    uint32_t writers;       /* 0: chosen */
    uint64_t segment_bytes; /* half of the memory bound; memory=64M sets it to half of that */
    uint64_t stripe_bytes;  /* 0: the file system's, or 1 MiB */
    uint32_t stripe_count;  /* 0: the file system's own choice; Lustre only */
    int32_t first_target;   /* -1: the file system's own choice; Lustre only */
    uint64_t lock_bytes;    /* lock-unit: what the file system lets one node write at a time; 0: as
                               it is known of the file system */
    int checksums, sync, share, explain; /* yes|no */
    int verify;                          /* yes|no: what is read is compared with its checksums */
    int update_in_place;                 /* update=copy|in-place */
    enum io_publish publish;             /* publish=no|yes|new: of files of shmemio */
    enum io_seam seam;     /* seam=auto|shmem|windows|messages: what carries a one-sided call */
    int direct_io;         /* direct-io=no|yes|auto: 0, 1, -1; auto is no: it does not pay */
    int uring;             /* uring=no|yes|auto: 0, 1, -1; with direct-io, where there is one */
    int async;             /* async=yes|no */
    uint64_t buffer_bytes; /* async: bytes a writer may hold back */
    uint64_t rate_bytes_s; /* async: cap a writer, 0: none */
    double slowdown;       /* async: factor by which the program's collectives may slow down */
};

extern const char *const io_transport_names[]; /* by enum io_transport */

void hints_default(struct io_hints *hints);

/* A number of bytes with K, M, G or T, of either case, behind it. 0, or -EINVAL: it is none. */
int hints_size(const char *text, uint64_t *bytes);

/* Whether `key` is one that hints_parse takes. */
int hints_knows(const char *key);

/* Takes the hints in `text` (may be NULL). -EINVAL names the key or value, and what there is. */
int hints_parse(struct io_hints *hints, const char *text, struct brg_error *err);

/* Takes those of the entries of `text` (BRIGADE_IO; may be NULL) whose pattern matches the file's
 * whole path or its last component (fnmatch), in order. -EINVAL as above, and where an entry has no
 * pattern, whatever the file is called. `path` NULL: each entry counts. */
int hints_parse_environment(struct io_hints *hints, const char *text, const char *path,
                            struct brg_error *err);

#endif
