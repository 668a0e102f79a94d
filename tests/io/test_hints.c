/* What hints take, and what they say of what they do not take. */
#include "claim.h"
#include "world/hints.h"

#include <errno.h>
#include <string.h>

static void sizes_have_units_of_either_case(void)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } cases[] = {{"0", 0},
                 {"12", 12},
                 {"4K", 4096},
                 {"4k", 4096},
                 {"3m", 3 << 20},
                 {"3MiB", 3 << 20},
                 {"3mib", 3 << 20},
                 {"2GB", UINT64_C(2) << 30},
                 {"2gb", UINT64_C(2) << 30},
                 {"1t", UINT64_C(1) << 40},
                 {"7B", 7}};
    static const char *const wrong[] = {"",    "K",  "-1",        "4Q",  "4KK",
                                        "4 M", "7b", "16777216T", "1.5M"};
    uint64_t bytes;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(hints_size(cases[i].text, &bytes) == 0 && bytes == cases[i].bytes, "%s: %llu",
              cases[i].text, (unsigned long long)bytes);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK(hints_size(wrong[i], &bytes) == -EINVAL, "'%s' is a size", wrong[i]);
}

static void a_hint_says_what_it_takes(void)
{
    struct io_hints hints;
    struct brg_error err;
    hints_default(&hints);
    CHECK(hints_parse(&hints, "segment=256k:writers=3", &err) == 0 &&
              hints.segment_bytes == 256 << 10 && hints.writers == 3,
          "%s", err.text);
    CHECK(hints_parse(&hints, "segment=1k", &err) == -EINVAL &&
              strstr(err.text, "from 65536 to 1073741824"),
          "%s", err.text);
    CHECK(hints_parse(&hints, "sgment=1M", &err) == -EINVAL && strstr(err.text, "segment"), "%s",
          err.text);
}

int main(void)
{
    sizes_have_units_of_either_case();
    a_hint_says_what_it_takes();
    return failures != 0;
}
