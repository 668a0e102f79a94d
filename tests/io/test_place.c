/* What Lustre is asked for, byte by byte; and what is said where there is no Lustre. */
#include "claim.h"
#include "store/place.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
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

int main(void)
{
    a_request_has_the_bytes_that_lustre_reads();
    elsewhere_it_is_not_applicable();
    return failures != 0;
}
