/* An image's device numbers are exchanged for those that its mounts have on this node. */
#include "stage/devices.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/sysmacros.h>

#include "head_of.h"

#define HEAD_ROOM (1u << 20)

/* Where the image was made: / is 8:1, /home 0:40, /sw 0:41, /sw/more 0:42, /sub one of btrfs. */
static const struct {
    const char *path;
    unsigned device, flags;
} tree[] = {
    {"/home", 40, BRG_MOUNT_DEV},
    {"/home/u", 40, BRG_MOUNT_DEV},
    {"/sw", 41, BRG_MOUNT_DEV},
    {"/sw/a", 41, BRG_MOUNT_DEV},
    {"/sw/more", 42, BRG_MOUNT_DEV},
    {"/sw/more/b", 42, BRG_MOUNT_DEV},
    {"/sub", 43, 0},
    {"/sub/c", 43, 0},
    {"/later", 44, BRG_MOUNT_DEV},
    {"/plain", 45, BRG_MOUNT_DEV},
};
#define N (sizeof tree / sizeof *tree)

static _Alignas(8) char head[HEAD_ROOM];

static const struct brg_index *make_index(void)
{
    char path[] = "/tmp/brigade-devices-XXXXXX";
    struct brg_error err = {0};
    struct brg_image_writer *w = NULL;
    int fd = mkstemp(path);
    NEED(fd >= 0);
    NEED(brg_image_writer_create(path, NULL, &w, &err) == 0);
    NEED(brg_image_writer_add_root(w, "/", &err) == 0);
    for (size_t i = 0; i < N; i++) {
        struct brg_image_entry e = {.path = tree[i].path,
                                    .kind = BRG_DIR,
                                    .flags = tree[i].flags,
                                    .order = BRG_NONE,
                                    .mode = 040755,
                                    .dev = makedev(0, tree[i].device)};
        NEED(brg_image_writer_add_entry(w, &e, &err) == 0);
    }
    head_of(w, path, fd, head, sizeof head);
    return brg_head_index(head);
}

static uint32_t find(const char *table, struct brg_device devices[BRG_STATE_DEVICES])
{
    static const struct brg_index *x;
    char path[] = "/tmp/brigade-devices-XXXXXX";
    struct mountinfo here;
    int fd = mkstemp(path);
    NEED(fd >= 0 && write(fd, table, strlen(table)) == (ssize_t)strlen(table));
    close(fd);
    NEED(mountinfo_read(&here, path) == 0);
    unlink(path);
    x = x ? x : make_index();
    uint32_t n = devices_find(x, &here, devices);
    mountinfo_free(&here);
    return n;
}

/* What the image's number 0:device is here, as 0:minor; the same if it is kept. */
static unsigned here_of(const struct brg_device *devices, uint32_t n, unsigned device)
{
    for (uint32_t i = 0; i < n; i++)
        if (devices[i].image == makedev(0, device))
            return minor(devices[i].here);
    return device;
}

static void each_number_becomes_that_of_the_mount_its_paths_lie_on(void)
{
    struct brg_device devices[BRG_STATE_DEVICES];
    uint32_t n = find("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
                      "31 22 0:40 / /home rw shared:5 master:2 - nfs4 server:/home rw\n"
                      "32 22 0:77 / /sw rw - fuse.mfs mfs rw\n"
                      "33 32 0:78 / /sw/more rw - nfs4 server:/more rw\n"
                      "34 22 0:79 / /sub rw - btrfs /dev/sdb rw\n",
                      devices);
    CHECK(here_of(devices, n, 41) == 77);
    CHECK(here_of(devices, n, 42) == 78);
    CHECK(here_of(devices, n, 40) == 40);
    CHECK(here_of(devices, n, 43) == 43);
    for (uint32_t i = 0; i < n; i++)
        CHECK(devices[i].image != devices[i].here);
}

static void what_is_yet_to_be_mounted_keeps_its_number(void)
{
    struct brg_device devices[BRG_STATE_DEVICES];
    uint32_t n = find("22 1 0:9 / / rw - nfs4 server:/root rw\n"
                      "31 22 0:50 / /later rw - autofs systemd-1 rw\n"
                      "32 22 0:51 / /plain rw - btrfs /dev/sdb rw\n"
                      "33 22 0:77 / /sw rw - nfs4 server:/sw rw\n",
                      devices);
    CHECK(here_of(devices, n, 44) == 44);
    CHECK(here_of(devices, n, 45) == 45); /* btrfs has another number for each volume */
    CHECK(here_of(devices, n, 41) == 77);
    CHECK(here_of(devices, n, 42) == 42); /* a part of the export, mounted when it is entered */
}

static void numbers_that_are_the_same_here_need_no_table(void)
{
    struct brg_device devices[BRG_STATE_DEVICES];
    CHECK(find("31 22 0:40 / /home rw - nfs4 server:/home rw\n"
               "32 22 0:41 / /sw rw - nfs4 server:/sw rw\n"
               "33 32 0:42 / /sw/more rw - nfs4 server:/more rw\n",
               devices) == 0);
}

int main(void)
{
    RUN(each_number_becomes_that_of_the_mount_its_paths_lie_on);
    RUN(what_is_yet_to_be_mounted_keeps_its_number);
    RUN(numbers_that_are_the_same_here_need_no_table);
    return failed_checks != 0;
}
