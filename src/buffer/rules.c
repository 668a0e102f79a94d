/* See rules.h. */
#include "buffer/rules.h"
#include "base/sys.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kind {
    KIND_SIZE,
    KIND_COUNT,
    KIND_PREFETCH,
    KIND_DELAY,
    KIND_FRESH,
    KIND_DIRECT,
    KIND_OFF,
    KIND_SAFE,
    KIND_VERBOSE,
    KIND_NOTHING /* IOBUF's, without a meaning here: see docs/how-to/buffer.md */
};

static const struct option {
    const char *name;
    enum kind kind;
} options[] = {
    {"size", KIND_SIZE},
    {"count", KIND_COUNT},
    {"prefetch", KIND_PREFETCH},
    {"delay", KIND_DELAY},
    {"fresh", KIND_FRESH},
    {"off", KIND_OFF},
    {"safe", KIND_SAFE},
    {"verbose", KIND_VERBOSE},
    {"synchronous", KIND_SAFE},
    {"direct", KIND_DIRECT},
    {"ignore_flush", KIND_NOTHING},
    {"noflush", KIND_NOTHING},
    {"lazyflush", KIND_NOTHING},
    {"line_merge", KIND_NOTHING},
    {"preflush", KIND_NOTHING},
    {"vbuffer_count", KIND_NOTHING},
    {"vbuffer_size", KIND_NOTHING},
};

#define SPACES " \t\r\n"
#define SIZE_LEAST 4096u
#define SIZE_MOST (1u << 30)

/* A number with K, M or G; UINT64_MAX if it is none. */
static uint64_t size_of(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return UINT64_MAX;
    uint64_t n = strtoull(text, &end, 10);
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K': shift = 10; break;
    case 'm':
    case 'M': shift = 20; break;
    case 'g':
    case 'G': shift = 30; break;
    default: break;
    }
    end += shift != 0;
    end += shift && (*end == 'i');
    end += shift && (*end == 'b' || *end == 'B');
    return *end || n > (UINT64_MAX >> 1 >> shift) ? UINT64_MAX : n << shift;
}

/* Seconds, as 0.2. */
static uint64_t nanoseconds_of(const char *text)
{
    char *end;
    double s = strtod(text, &end);
    return end == text || *end || !(s >= 0 && s < 1e6) ? UINT64_MAX : (uint64_t)(s * 1e9);
}

/* One option of a rule: NULL, or what is wrong with it. */
static const char *set_option(struct rule *rule, char *text)
{
    char *value = strchr(text, '=');
    if (value)
        *value++ = 0;
    const struct option *o = options, *end = options + sizeof options / sizeof *options;
    while (o < end && strcmp(o->name, text) != 0)
        o++;
    if (o == end)
        return "is no option";
    if (o->kind <= KIND_FRESH && o->kind != KIND_PREFETCH && !value)
        return "needs a value";
    uint64_t n = !value                                           ? 1
                 : o->kind == KIND_DELAY || o->kind == KIND_FRESH ? nanoseconds_of(value)
                 : o->kind <= KIND_DIRECT                         ? size_of(value)
                                                                  : 0;
    if (n == UINT64_MAX)
        return "has a value that is no number";
    switch (o->kind) {
    case KIND_SIZE:
        if (n < SIZE_LEAST || n > SIZE_MOST)
            return "is 4K at least and 1G at most";
        rule->size_bytes = (n + 4095) & ~(uint64_t)4095;
        break;
    case KIND_COUNT:
        if (n < 1)
            return "is 1 at least";
        rule->count = n > RULES_COUNT_MOST ? RULES_COUNT_MOST : (unsigned)n;
        break;
    case KIND_PREFETCH: rule->prefetch = n > 1000 ? 1000 : (unsigned)n; break;
    case KIND_DELAY: rule->delay_ns = n; break;
    case KIND_FRESH: rule->fresh_ns = n; break;
    case KIND_DIRECT: rule->direct = n != 0; break;
    case KIND_OFF: rule->off = 1; break;
    case KIND_SAFE: rule->safe = 1; break;
    case KIND_VERBOSE: rule->verbose = 1; break;
    case KIND_NOTHING: break;
    }
    return NULL;
}

/* One rule, `text` cut up; NULL or what is wrong, with *where the word. */
static const char *set_rule(struct rule *rule, char *text, char **where)
{
    char *rest = text, *word = strsep(&rest, ":");
    *where = word;
    *rule = (struct rule){.size_bytes = 1 << 20,
                          .count = 4,
                          .prefetch = 1,
                          .delay_ns = 200000000,
                          .fresh_ns = 1000000000};
    if (!*word)
        return "is no pattern";
    if (strlen(word) >= sizeof rule->pattern)
        return "is too long";
    memcpy(rule->pattern, word, strlen(word) + 1);
    while ((word = strsep(&rest, ":"))) {
        *where = word;
        const char *wrong = set_option(rule, word);
        if (wrong)
            return wrong;
    }
    return NULL;
}

unsigned rules_parse(struct rules *rules, const char *text, char *said, size_t room)
{
    char copy[4096];
    rules->n = 0;
    said[0] = 0;
    if (strlen(text) >= sizeof copy) {
        snprintf(said, room, "is longer than %zu bytes", sizeof copy - 1);
        return 0;
    }
    memcpy(copy, text, strlen(text) + 1);
    char *rest = copy, *one;
    while ((one = strsep(&rest, ","))) {
        char *where;
        one += strspn(one, SPACES);
        for (char *end = one + strlen(one); end > one && strchr(SPACES, end[-1]); end--)
            end[-1] = 0;
        if (!*one)
            continue;
        if (rules->n == RULES_MOST) {
            snprintf(said, room, "has more than %d rules", RULES_MOST);
            break;
        }
        const char *wrong = set_rule(&rules->rule[rules->n], one, &where);
        if (wrong && !said[0])
            snprintf(said, room, "'%s' %s", where, wrong);
        rules->n += !wrong;
    }
    return rules->n;
}

const struct rule *rules_find(const struct rules *rules, const char *path)
{
    char whole[PATH_MAX];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    whole[0] = 0;
    for (unsigned i = 0; i < rules->n; i++) {
        const struct rule *rule = &rules->rule[i];
        if (!strchr(rule->pattern, '/')) {
            if (fnmatch(rule->pattern, name, 0) == 0)
                return rule;
            continue;
        }
        if (fnmatch(rule->pattern, path, 0) == 0)
            return rule;
        if (path[0] == '/')
            continue;
        if (!whole[0]) {
            long n = sys_getcwd(whole, sizeof whole);
            if (n <= 0 || (size_t)n + 1 + strlen(path) >= sizeof whole)
                n = 1;
            whole[n - 1] = '/';
            snprintf(whole + n, sizeof whole - (size_t)n, "%s", path);
        }
        if (fnmatch(rule->pattern, whole, 0) == 0)
            return rule;
    }
    return NULL;
}
