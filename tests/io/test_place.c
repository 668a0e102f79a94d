/* What Lustre is asked for, byte by byte; and what is said where there is no Lustre. */
#include "claim.h"
#include "store/place.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

static void a_request_has_the_bytes_that_lustre_reads(void)
{
    static const unsigned char expected[32] = {0xd0, 0x0b, 0xd1, 0x0b, 0,    0, 0, 0, 0, 0, 0,
                                               0,    0,    0,    0,    0,    0, 0, 0, 0, 0, 0,
                                               0,    0,    0,    0x00, 0x40, 0, 4, 0, 7, 0};
    struct io_hints hints;
    struct place_lov request;
    hints_default(&hints);
    CHECK(place_request(&request, &hints) == 0, "no hint asks for nothing");
    hints.stripe_bytes = 4 << 20;
    hints.stripe_count = 4;
    hints.first_target = 7;
    CHECK(place_request(&request, &hints) == 1, "these do");
    CHECK(sizeof request == 32, "%zu bytes", sizeof request);
    CHECK(memcmp(&request, expected, sizeof expected) == 0, "little-endian layout");
    hints.first_target = -1;
    hints.stripe_count = 100000;
    hints.stripe_bytes = 100000;
    place_request(&request, &hints);
    CHECK(request.first_target == 0xffff, "any target: %x", request.first_target);
    CHECK(request.stripe_count == 0xffff, "all targets: %x", request.stripe_count);
    CHECK(request.stripe_size == 131072, "a multiple of 64 KiB: %u", request.stripe_size);
}

static void elsewhere_it_is_not_applicable(void)
{
    char path[] = "/tmp/brigade-test-XXXXXX";
    struct io_hints hints;
    struct place place;
    int fd = mkstemp(path);
    hints_default(&hints);
    CHECK(place_open_flags("/tmp", &hints) == 0, "no flags");
    CHECK(place_choose(fd, 1, &hints, &place) == 0, "nothing asked");
    CHECK(place.stripe_bytes == 1 << 20 && place.stripe_count == 0, "the default: %s", place.text);
    hints.stripe_count = 8;
    hints.stripe_bytes = 3 << 20;
    CHECK(place_choose(fd, 1, &hints, &place) == 0, "no failure");
    CHECK(place.stripe_bytes == 4 << 20, "a power of two: %s", place.text);
    CHECK(strstr(place.text, "not applicable") != NULL, "it says so: %s", place.text);
    close(fd);
    unlink(path);
}

static void room_is_reserved_on_ext4_alone(void)
{
    static const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp"};
    struct io_hints hints;
    hints_default(&hints);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char path[64];
        struct statfs fs;
        struct place place;
        snprintf(path, sizeof path, "%s/brigade-test-XXXXXX", folders[i]);
        int fd = mkstemp(path);
        CHECK(fstatfs(fd, &fs) == 0 && place_choose(fd, 1, &hints, &place) == 0, "%s", path);
        CHECK(place.reserves == (fs.f_type == 0xef53), "%s: %d", path, place.reserves);
        close(fd);
        unlink(path);
    }
}

static void a_disk_says_itself_how_it_likes_to_be_read(void)
{
    DIR *disks = opendir("/sys/dev/block");
    unsigned major, minor;
    for (struct dirent *entry; disks && (entry = readdir(disks));) {
        char path[300];
        if (sscanf(entry->d_name, "%u:%u", &major, &minor) != 2)
            continue;
        snprintf(path, sizeof path, "/sys/dev/block/%s/queue/rotational", entry->d_name);
        FILE *file = fopen(path, "r");
        int says = 0;
        if (file && fscanf(file, "%d", &says) == 1) {
            int found = place_one_stream(makedev(major, minor));
            CHECK(found == says, "%s: %d", entry->d_name, found);
        }
        if (file)
            fclose(file);
    }
    if (disks)
        closedir(disks);
    CHECK(!place_one_stream(makedev(0, 40)), "what is no disk");
}

static void the_turns_of_clients_are_known(void)
{
    static const struct {
        const char *line;
        uint64_t device, bytes;
    } cases[] = {
        {"236 230 0:59 / /mnt/a rw,nosuid - fuse mfs\\04310.203.0.1:9421 rw,user_id=0", 59,
         64 << 20},
        {"38 1 0:84 / /mnt/mfs rw shared:3 master:1 - fuse.mfs mfsmaster:9421 rw", 84, 64 << 20},
        {"38 1 8:1 / /mnt/my\\040fuse rw - ext4 /dev/mfs rw", 8 << 8 | 1, 0},
        {"38 1 0:84 / /mnt/x rw - fuse squashfuse rw", 84, 0},
        {"", 0, 0},
        {"no such line", 0, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint64_t device, bytes = place_lock_unit(cases[i].line, &device);
        CHECK(bytes == cases[i].bytes, "%s: %llu", cases[i].line, (unsigned long long)bytes);
        CHECK(device == cases[i].device, "%s: device %llu", cases[i].line,
              (unsigned long long)device);
    }
}

static void a_hint_says_what_is_not_known(void)
{
    char path[] = "/tmp/brigade-test-XXXXXX";
    struct io_hints hints;
    struct place place;
    int fd = mkstemp(path);
    hints_default(&hints);
    place_choose(fd, 1, &hints, &place);
    CHECK(place.lock_bytes == 0, "nothing is known of a local disk: %s", place.text);
    hints.lock_bytes = 48 << 20;
    place_choose(fd, 1, &hints, &place);
    CHECK(place.lock_bytes == 64 << 20, "a power of two: %s", place.text);
    CHECK(strstr(place.text, "one node at a time writes each 64 MiB"), "it says so: %s",
          place.text);
    close(fd);
    unlink(path);
}

int main(void)
{
    a_request_has_the_bytes_that_lustre_reads();
    elsewhere_it_is_not_applicable();
    room_is_reserved_on_ext4_alone();
    a_disk_says_itself_how_it_likes_to_be_read();
    the_turns_of_clients_are_known();
    a_hint_says_what_is_not_known();
    return failures != 0;
}
