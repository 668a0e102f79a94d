/* See place.h. Numbers and layouts are those of Lustre's lustre_user.h (2.x), which programs may
 * not have: ioctls 'f' 154 and 155, LL_SUPER_MAGIC, struct lov_user_md_v1, O_LOV_DELAY_CREATE. */
#include "store/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#define LUSTRE_SUPER_MAGIC 0x0bd00bd0u
#define FUSE_SUPER_MAGIC 0x65735546u
#define EXT4_SUPER_MAGIC 0xef53u /* and of ext2 and ext3 */
#define LUSTRE_SETSTRIPE _IOW('f', 154, long)
#define LUSTRE_GETSTRIPE _IOW('f', 155, long)
#define LUSTRE_DELAY_CREATE (0100000000 | O_NOCTTY | FASYNC) /* of old and of new versions */
#define LUSTRE_MAGIC_V3 0x0bd30bd0u /* with a pool's name behind; else the same */
#define LUSTRE_OBJECTS (2000 * 24 + 16)
#define STRIPE_DEFAULT (1u << 20)
#define STRIPE_LEAST (64u << 10)
#define STRIPE_MOST (1u << 30)

int place_request(struct place_lov *r, const struct io_hints *hints)
{
    if (!hints->stripe_bytes && !hints->stripe_count && hints->first_target < 0)
        return 0;
    *r = (struct place_lov){
        .magic = PLACE_LOV_MAGIC,
        .stripe_size = (uint32_t)(hints->stripe_bytes + STRIPE_LEAST - 1) & ~(STRIPE_LEAST - 1),
        .stripe_count = (uint16_t)(hints->stripe_count < 0xffff ? hints->stripe_count : 0xffff),
        .first_target = hints->first_target < 0 ? 0xffff : (uint16_t)hints->first_target};
    return 1;
}

static uint64_t power_of_two(uint64_t bytes)
{
    uint64_t power = STRIPE_LEAST;
    while (power < bytes && power < STRIPE_MOST)
        power *= 2;
    return power;
}

enum place_kind place_kind(int fd, const char *path)
{
    struct statfs fs;
    if (path ? statfs(path, &fs) : fstatfs(fd, &fs))
        return PLACE_OTHER;
    uint32_t magic = (uint32_t)fs.f_type;
    return magic == LUSTRE_SUPER_MAGIC ? PLACE_LUSTRE
           : magic == FUSE_SUPER_MAGIC ? PLACE_FUSE
           : magic == EXT4_SUPER_MAGIC ? PLACE_EXT4
                                       : PLACE_OTHER;
}

/* The same of a file whose device is known: what a device is does not change, and asking is a
 * request to a shared file system. */
static enum place_kind kind_of(int fd, uint64_t device)
{
    static _Thread_local uint64_t known_device;
    static _Thread_local enum place_kind known;
    if (device && device == known_device)
        return known;
    known = place_kind(fd, NULL);
    known_device = device;
    return known;
}

int place_open_flags(const char *folder, const struct io_hints *hints)
{
    struct place_lov request;
    return place_request(&request, hints) && place_kind(-1, folder) == PLACE_LUSTRE
               ? LUSTRE_DELAY_CREATE
               : 0;
}

static int on_lustre(int fd, int fresh, const struct io_hints *hints, struct place *place)
{
    struct place_lov request, *found = calloc(1, sizeof *found + LUSTRE_OBJECTS);
    if (!found)
        return -ENOMEM;
    int rc = 0;
    if (fresh && place_request(&request, hints) && ioctl(fd, LUSTRE_SETSTRIPE, &request))
        rc = -errno;
    found->magic = PLACE_LOV_MAGIC;
    if (!rc && ioctl(fd, LUSTRE_GETSTRIPE, found) == 0 &&
        (found->magic == PLACE_LOV_MAGIC || found->magic == LUSTRE_MAGIC_V3) &&
        found->stripe_size) {
        place->stripe_bytes = power_of_two(found->stripe_size);
        place->stripe_count = found->stripe_count;
        snprintf(place->text, sizeof place->text, "Lustre: %u stripes of %u bytes",
                 found->stripe_count, found->stripe_size);
    } else
        snprintf(place->text, sizeof place->text,
                 "Lustre: its layout is of several components, stripes are taken as %llu bytes",
                 (unsigned long long)place->stripe_bytes);
    free(found);
    return rc;
}

int place_choose(int fd, int fresh, const struct io_hints *hints, struct place *place)
{
    struct stat st;
    int is_known = fstat(fd, &st) == 0;
    uint64_t own = is_known ? (uint64_t)st.st_blksize : 0;
    enum place_kind kind = kind_of(fd, is_known ? (uint64_t)st.st_dev : 0);
    *place = (struct place){.stripe_bytes = STRIPE_DEFAULT, .reserves = kind == PLACE_EXT4};
    if (hints->stripe_bytes)
        place->stripe_bytes = power_of_two(hints->stripe_bytes);
    else if (own > STRIPE_DEFAULT && own <= STRIPE_MOST)
        place->stripe_bytes = power_of_two(own);
    if (hints->lock_bytes)
        place->lock_bytes = power_of_two(hints->lock_bytes);
    else if (kind == PLACE_FUSE && is_known)
        place->lock_bytes = place_lock_bytes((uint64_t)st.st_dev);
    if (kind == PLACE_LUSTRE)
        return on_lustre(fd, fresh, hints, place);
    int n =
        snprintf(place->text, sizeof place->text, "%s%s",
                 hints->stripe_bytes    ? "as the hint says"
                 : own > STRIPE_DEFAULT ? "what the file system likes"
                                        : "the default",
                 hints->stripe_count || hints->first_target >= 0
                     ? "; number of stripes and first target: not applicable, this is not Lustre"
                     : "; this is not Lustre");
    if (place->lock_bytes)
        snprintf(place->text + n, sizeof place->text - (size_t)n,
                 "; one node at a time writes each %llu MiB",
                 (unsigned long long)place->lock_bytes >> 20);
    return 0;
}
