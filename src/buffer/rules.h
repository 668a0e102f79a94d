/* Which files are buffered, and how: the text of BRIGADE_BUFFER, or of IOBUF_PARAMS.
 *
 *   rules   := rule { "," rule }
 *   rule    := pattern { ":" option }
 *   option  := name [ "=" value ]
 *
 * Spaces around a rule do not count.
 *
 * The first rule that matches a path decides. A pattern without "/" is compared with the last part
 * of the path, any other with the whole path as the program gave it and with the absolute one (of
 * openat too as if it were relative to the working directory).
 * Pure: no I/O but getcwd, no allocation.
 */
#ifndef BRG_BUFFER_RULES_H
#define BRG_BUFFER_RULES_H

#include <stddef.h>
#include <stdint.h>

#define RULES_MOST 32
#define RULES_COUNT_MOST 64

struct rule {
    char pattern[256];
    uint64_t size_bytes; /* of one buffer */
    unsigned count;      /* buffers of a file, most */
    unsigned prefetch;   /* buffers read ahead */
    uint64_t delay_ns;   /* how long written bytes may stay in a buffer */
    uint64_t fresh_ns;   /* how old read-ahead bytes may be */
    char off, safe, verbose;
    char direct; /* read past the page cache: see direct.h */
};

struct rules {
    struct rule rule[RULES_MOST];
    unsigned n;
};

/* Fills *rules from `text`. What cannot be meant as written is left out (the rule with it) and
 * said in `said` (room bytes), which is empty if all is well. Returns the number of rules. */
unsigned rules_parse(struct rules *rules, const char *text, char *said, size_t room);

/* The first rule for `path` as the program gave it to a call relative to the working directory, or
 * NULL. `off` rules are returned too. */
const struct rule *rules_find(const struct rules *rules, const char *path);

#endif
