/* Publishing a file of parts: its index goes under the name; until then the old file is there. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "world/fault.h"
#include "store/store_inside.h"
#include "store/store_io.h"

static int sync_folder(const char *folder)
{
    char inside[PARTS_NAME];
    snprintf(inside, sizeof inside, "%s/", folder);
    return brg_io_sync_folder_of(inside);
}

static int make_index(struct io_store *s, const char *folder, uint64_t size)
{
    struct parts_head head = {
        .id = s->token.id, .size = size, .block_bytes = s->token.stripe_bytes};
    snprintf(head.folder, sizeof head.folder, "%.255s", strrchr(folder, '/') + 1);
    int fd = store_io_open(s->token.base, O_RDWR, 0);
    int rc = fd < 0 ? fd : parts_make_index(folder, fd, &head, s->memory);
    io_fault_step();
    rc = rc ? rc : fchmod(fd, (mode_t)s->token.mode) ? -errno : s->sync ? store_io_sync(fd) : 0;
    if (fd >= 0)
        close(fd);
    return rc ? rc : s->sync ? sync_folder(folder) : 0;
}

int store_publish_parts(struct io_store *s, uint64_t size, struct brg_error *err)
{
    char folder[STORE_NAME_BYTES], old[STORE_PATH + PARTS_FOLDER];
    int beside = -1;
    store_parts_folder(folder, s->token.base);
    store_parts_of(old, s->token.path);
    io_fault_step();
    int rc = make_index(s, folder, size);
    if (rc)
        return store_failed(err, rc, s->token.path, -1, "make the index of");
    io_fault_step();
    rc = store_enter_folder(s, &beside, err);
    if (rc)
        return rc;
    rc = store_io_rename(s->token.base, s->token.path, !(s->token.flags & BRG_EXCLUSIVE));
    if (rc)
        store_failed(err, rc, s->token.path, -1, "publish");
    s->published = rc == 0;
    io_fault_step();
    rc = store_leave_folder(s, beside, rc, err);
    if (rc)
        return rc;
    io_fault_step();
    /* What the old file was made of, and its checksums, are of no use now. */
    store_remove_sums(s->token.path);
    if (old[0])
        parts_remove(old);
    return 0;
}
