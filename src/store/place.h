/* How a file lies on its servers: stripes. They are chosen on Lustre, by ioctl, while the file is
 * still empty; elsewhere they are what the file system says, or a default. */
#ifndef BRG_IO_PLACE_H
#define BRG_IO_PLACE_H

#include "world/hints.h"

/* What an empty file is told on Lustre: struct lov_user_md_v1 of lustre_user.h, without objects. */
struct place_lov {
    uint32_t magic;   /* PLACE_LOV_MAGIC */
    uint32_t pattern; /* 0: the default, RAID 0 */
    uint64_t id, sequence;
    uint32_t stripe_size;  /* bytes, a multiple of 64 KiB; 0: the default */
    uint16_t stripe_count; /* 0: the default; 0xffff: all */
    uint16_t first_target; /* 0xffff: any */
} __attribute__((packed));

#define PLACE_LOV_MAGIC 0x0bd10bd0u

/* The request for these hints; 1, or 0 where they ask for nothing. */
int place_request(struct place_lov *request, const struct io_hints *hints);

struct place {
    uint64_t stripe_bytes; /* a power of two */
    uint32_t stripe_count; /* 0: not known */
    uint64_t lock_bytes;   /* what one client may write at a time, a power of two; 0: any length */
    int reserves;          /* writing takes less where room was reserved before (fallocate(2)) */
    char text[160];        /* for people: what was chosen and why, one line */
};

/* Of a line of /proc/self/mountinfo (proc(5)): what of a file one client may write at a time while
 * others wait; 0: nothing is known of such turns. *device is that of the file system. */
uint64_t place_lock_unit(const char *line, uint64_t *device);
/* The same of a file system of FUSE, by its device. */
uint64_t place_lock_bytes(uint64_t device);

/* What file system `path`, or fd where that is NULL, lies on. */
enum place_kind {
    PLACE_OTHER, /* or it cannot be known */
    PLACE_LUSTRE,
    PLACE_FUSE,
    PLACE_EXT4
};
enum place_kind place_kind(int fd, const char *path);

/* Whether a device of blocks turns, or says that it does as most virtual disks do: one reader that
 * goes through a file is then faster than several. 0 too of what is none, or not known. */
int place_one_stream(uint64_t device);

/* More flags for the open(2) that makes a file in `folder`, so that its stripes can be chosen. */
int place_open_flags(const char *folder, const struct io_hints *hints);

/* Chooses the stripes of an empty file (fresh) or finds those of one that is there. 0, or -errno of
 * a Lustre that refuses what the hints ask for. */
int place_choose(int fd, int fresh, const struct io_hints *hints, struct place *place);

#endif
