/* What the calls of brigade/shmemio.h share. */
#ifndef BRG_SHMEMIO_INSIDE_H
#define BRG_SHMEMIO_INSIDE_H

#include <errno.h>

#include "brigade/shmemio.h"
#include "move/onesided.h"
#include "type/file_view.h"
#include "world/world.h"

/* Failures that have a code of their own travel as these, in struct brg_error, as all others travel
 * as -errno: so that every PE makes the same code of them. */
#define WRONG_TYPE EPROTOTYPE
#define WRONG_COMM ECHRNG
#define WRONG_AMODE EBADE
#define WRONG_FILE EBADFD
#define WRONG_COUNT EBADSLT
#define WRONG_DATAREP EBADRQC
#define NOT_SAME ENOTUNIQ

/* ---- error.c ---- */

#define NO_FAILURE               \
    {                            \
        .rank = -1, .offset = -1 \
    }

/* The end of every call: SHMEM_SUCCESS where failure->code is 0; else the failure is kept as the
 * last one, and its code returned. */
int shmemio_end(const struct brg_error *failure);
/* The same for a failure that is made here. */
int shmemio_refuse(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- group.c ---- */

/* The PEs of a group, with windows for the files that are open on it; there as long as a file
 * is. */
struct group {
    struct group *next;
    SHMEM_Comm comm;
    enum io_seam seam;
    int by_messages; /* of its world, rather than put and get; */
    char why[96];    /* for people */
    unsigned users;
    struct pgas *pgas;
    struct io_world *world; /* over MPI; or NULL */
    struct group_windows {
        struct group_windows *next;
        unsigned users;
        uint64_t bytes; /* of one */
        struct onesided *onesided;
    } * windows;
};

/* Collective over the group; each open is closed. 0 or -errno. Of the hints: seam, and over MPI the
 * memory of a node. */
int group_open(SHMEM_Comm comm, const struct io_hints *hints, struct group **group,
               struct brg_error *err);
void group_close(struct group *group);
/* Collective. Windows of `bytes`, a power of two, the same on every PE. */
int group_windows_open(struct group *group, uint64_t bytes, struct group_windows **windows,
                       struct brg_error *err);
void group_windows_close(struct group *group, struct group_windows *windows);

/* ---- datatype.c ---- */

struct shmem_datatype {
    struct type *type;
    int committed;
};

/* A share of what a handle means (type_release), or -WRONG_TYPE. ready: it must be committed. */
int datatype_of(SHMEM_Datatype handle, int ready, struct type **type, struct brg_error *err);
/* A handle for a type, whose share it takes over. SHMEM_DATATYPE_NULL: no memory. */
SHMEM_Datatype datatype_make(struct type *type, int committed);
/* Nothing but a number: nothing of it is to be freed. */
int datatype_is_basic(SHMEM_Datatype handle);

/* ---- info.c ---- */

struct shmem_info {
    struct info_pair {
        struct info_pair *next;
        char key[SHMEM_MAX_INFO_KEY], value[SHMEM_MAX_INFO_VAL];
    } * first;
};

/* The hints of the info (may be NULL), and of BRIGADE_IO, which win. -EKEYREJECTED or -EINVAL names
 * the key and what it takes. async and layout do not apply: they are what they are by default. */
int info_read(SHMEM_Info info, const char *path, struct io_hints *hints, struct brg_error *err);

/* ---- files ---- */

struct shmem_file {
    struct group *group;
    struct pgas *pgas; /* the group's */
    struct group_windows *windows;
    int amode;
    struct io_hints hints;
    struct store_token token;
    struct io_store *store;
    struct drain *drain;
    uint64_t size;      /* as far as this PE knows */
    struct hull behind; /* what was written, and is not known to have been shown to other nodes */
    struct file_view view;
    struct type *etype, *filetype;
    SHMEM_Datatype basic_etype, basic_filetype; /* as they were given, if they are basic */
    uint64_t position;                          /* of this PE's pointer, in etypes */
    int goes; /* rank 0: holds the file that is deleted when this one is closed; -1: none */
    struct brg_error failure; /* publish: what keeps it from being published */
    char explained[1024];
};

/* 0, or -WRONG_FILE: no file. */
int file_check(const struct shmem_file *file, struct brg_error *err);
/* Everything that is open of it; and, if it was not opened, as if it had never been. */
void file_destroy(struct shmem_file *file, int abandon);
/* The failure of any PE becomes everybody's, with the path; returns its code. Collective. */
int file_agree(struct shmem_file *file, struct brg_error *failure);
void file_name_path(const struct shmem_file *file, struct brg_error *failure);
/* What a call that changes the file ended with: a failure keeps it from being published. Local. */
void file_keep_failure(struct shmem_file *file, const struct brg_error *failure);

/* Collective. On several nodes: what any PE wrote is seen by all from now on. 0, or everybody's
 * failure. */
int file_show(struct shmem_file *file, struct brg_error *failure);

/* Local. A file that is published has its checksums from what was written. What a PE writes alone,
 * or a new size, is told to no other: so no checksum of a block may rest on several calls, or on
 * where the file ended; it is read back instead. */
int file_end_stream(struct shmem_file *file, struct brg_error *err);

/* view.c: the view that a file has when it is opened. Local. */
int view_start(struct shmem_file *file, struct brg_error *err);
void view_drop(struct shmem_file *file);

#endif
