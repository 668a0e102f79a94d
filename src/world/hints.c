/* See hints.h. */
#include "world/hints.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <locale.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

const char *const io_transport_names[] = {"auto", "direct", "simple", "brigade", "rotate", NULL};
static const char *const layouts[] = {"shared", "parts", NULL};
static const char *const yes_no[] = {"no", "yes", NULL};
static const char *const yes_no_auto[] = {"auto", "no", "yes", NULL}; /* from -1 on */
static const char *const updates[] = {"copy", "in-place", NULL};
static const char *const publishing[] = {"no", "yes", "new", NULL};
static const char *const seams[] = {"auto", "shmem", "windows", "messages", NULL};

enum kind {
    WORD,
    COUNT,
    SIGNED,
    SIZE,
    FACTOR
};

#define AT(member) offsetof(struct io_hints, member)
static const struct key {
    const char *name;
    enum kind kind;
    size_t at;
    const char *const *words;
    int first; /* the value of words[0] */
    uint64_t least, most;
} keys[] = {
    {"transport", WORD, AT(transport), io_transport_names, IO_AUTO, 0, 0},
    {"layout", WORD, AT(layout), layouts, IO_SHARED, 0, 0},
    {"writers", COUNT, AT(writers), NULL, 0, 1, UINT32_MAX},
    {"segment", SIZE, AT(segment_bytes), NULL, 0, 64u << 10, 1u << 30},
    {"stripe", SIZE, AT(stripe_bytes), NULL, 0, 64u << 10, 1u << 30},
    {"stripe-count", COUNT, AT(stripe_count), NULL, 0, 1, UINT32_MAX},
    {"first-target", SIGNED, AT(first_target), NULL, 0, 0, INT32_MAX},
    {"lock-unit", SIZE, AT(lock_bytes), NULL, 0, 64u << 10, 1u << 30},
    {"checksums", WORD, AT(checksums), yes_no, 0, 0, 0},
    {"verify", WORD, AT(verify), yes_no, 0, 0, 0},
    {"sync", WORD, AT(sync), yes_no, 0, 0, 0},
    {"share", WORD, AT(share), yes_no, 0, 0, 0},
    {"explain", WORD, AT(explain), yes_no, 0, 0, 0},
    {"update", WORD, AT(update_in_place), updates, 0, 0, 0},
    {"publish", WORD, AT(publish), publishing, IO_PUBLISH_NO, 0, 0},
    {"seam", WORD, AT(seam), seams, IO_SEAM_AUTO, 0, 0},
    {"direct-io", WORD, AT(direct_io), yes_no_auto, -1, 0, 0},
    {"uring", WORD, AT(uring), yes_no_auto, -1, 0, 0},
    {"async", WORD, AT(async), yes_no, 0, 0, 0},
    {"buffer", SIZE, AT(buffer_bytes), NULL, 0, 64u << 10, 1ull << 40},
    {"rate", SIZE, AT(rate_bytes_s), NULL, 0, 1, 1ull << 50},
    {"slowdown", FACTOR, AT(slowdown), NULL, 0, 1, 1000},
};
#define N_KEYS (sizeof keys / sizeof *keys)

void hints_default(struct io_hints *hints)
{
    *hints = (struct io_hints){.segment_bytes = 4u << 20,
                               .first_target = -1,
                               .checksums = 1,
                               .sync = 1,
                               .share = 1,
                               .direct_io = -1,
                               .uring = -1,
                               .buffer_bytes = 64u << 20,
                               .slowdown = 1.1};
}

/* K is 1024. */
int hints_size(const char *text, uint64_t *bytes)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (end == text || errno || *text == '-')
        return -EINVAL;
    const char *units = "KMGT", *unit = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
    int shift = 0;
    if (unit) {
        shift = 10 * (int)(unit - units + 1);
        end++;
    }
    if (end[0] == 'i' && unit)
        end++;
    if (end[0] == 'B' || (unit && end[0] == 'b'))
        end++;
    if (*end || number > UINT64_MAX >> shift)
        return -EINVAL;
    *bytes = (uint64_t)number << shift;
    return 0;
}

static int bad_word(const struct key *key, const char *value, struct brg_error *err)
{
    char known[128] = "";
    for (const char *const *word = key->words; *word; word++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", *word);
    }
    return brg_error_set(err, -EINVAL, "hint %s=%s: it takes one of %s", key->name, value, known);
}

/* With a point, whatever the program's language has there. */
static int factor_of(const char *text, double *factor)
{
    char *end;
    locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
    *factor = plain ? strtod_l(text, &end, plain) : strtod(text, &end);
    if (plain)
        freelocale(plain);
    return end == text || *end ? -EINVAL : 0;
}

static int set_number(struct io_hints *hints, const struct key *key, const char *value,
                      struct brg_error *err)
{
    void *at = (char *)hints + key->at;
    uint64_t number = 0;
    if (key->kind == FACTOR) {
        double factor;
        if (factor_of(value, &factor) ||
            !(factor >= (double)key->least && factor <= (double)key->most))
            return brg_error_set(err, -EINVAL, "hint %s=%s: it takes a factor from %llu to %llu",
                                 key->name, value, (unsigned long long)key->least,
                                 (unsigned long long)key->most);
        *(double *)at = factor;
        return 0;
    }
    if (hints_size(value, &number) || number < key->least || number > key->most)
        return brg_error_set(err, -EINVAL, "hint %s=%s: it takes a number from %llu to %llu%s",
                             key->name, value, (unsigned long long)key->least,
                             (unsigned long long)key->most, key->kind == SIZE ? ", as 4M" : "");
    if (key->kind == SIZE)
        *(uint64_t *)at = number;
    else
        *(uint32_t *)at = (uint32_t)number;
    return 0;
}

static int set(struct io_hints *hints, const char *name, const char *value, struct brg_error *err)
{
    if (strcmp(name, "memory") == 0) {
        uint64_t bytes;
        if (hints_size(value, &bytes) || bytes < 128u << 10 || bytes > 2ull << 30)
            return brg_error_set(err, -EINVAL, "hint memory=%s: it takes a size from 128K to 2G",
                                 value);
        hints->segment_bytes = bytes / 2;
        return 0;
    }
    for (const struct key *key = keys; key < keys + N_KEYS; key++) {
        if (strcmp(key->name, name))
            continue;
        if (key->kind != WORD)
            return set_number(hints, key, value, err);
        for (int i = 0; key->words[i]; i++)
            if (strcmp(key->words[i], value) == 0) {
                *(int *)((char *)hints + key->at) = key->first + i;
                return 0;
            }
        return bad_word(key, value, err);
    }
    char known[512] = "memory";
    for (const struct key *key = keys; key < keys + N_KEYS; key++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, ", %s", key->name);
    }
    return brg_error_set(err, -EINVAL, "there is no hint %s; there are: %s", name, known);
}

int hints_knows(const char *key)
{
    int known = strcmp(key, "memory") == 0;
    for (size_t i = 0; i < N_KEYS; i++)
        known |= strcmp(key, keys[i].name) == 0;
    return known;
}

/* Without the blanks around it. */
static char *bare(char *word)
{
    word += strspn(word, " \t\n");
    size_t n = strlen(word);
    while (n && strchr(" \t\n", word[n - 1]))
        word[--n] = '\0';
    return word;
}

int hints_parse(struct io_hints *hints, const char *text, struct brg_error *err)
{
    char *copy = strdup(text ? text : ""), *rest = copy, *word;
    int rc = copy ? 0 : brg_error_set(err, -ENOMEM, "no memory for the hints");
    while (!rc && (word = strsep(&rest, ":"))) {
        word = bare(word);
        char *value = strchr(word, '=');
        if (!*word)
            continue;
        if (!value) {
            rc = brg_error_set(err, -EINVAL, "hint %s: it should read %s=VALUE", word, word);
            break;
        }
        *value++ = '\0';
        rc = set(hints, bare(word), bare(value), err);
    }
    free(copy);
    return rc;
}

/* A hint that stands where a pattern should: no file was meant to be called so. */
static int is_hint(const char *pattern)
{
    char name[32];
    size_t n = strcspn(pattern, "=");
    if (!pattern[n] || n >= sizeof name)
        return 0;
    memcpy(name, pattern, n);
    name[n] = '\0';
    return hints_knows(bare(name));
}

static int no_pattern(const char *entry, const char *rest, struct brg_error *err)
{
    return brg_error_set(err, -EINVAL,
                         "BRIGADE_IO, entry %.200s%s%.200s: it should read PATTERN:hint=value, as "
                         "*.ckpt:writers=8 or, for all files, *:writers=8",
                         entry, rest ? ":" : "", rest ? rest : "");
}

int hints_parse_environment(struct io_hints *hints, const char *text, const char *path,
                            struct brg_error *err)
{
    char *copy = strdup(text ? text : ""), *rest = copy, *entry;
    const char *slash = path ? strrchr(path, '/') : NULL, *name = slash ? slash + 1 : path;
    int rc = copy ? 0 : brg_error_set(err, -ENOMEM, "no memory for BRIGADE_IO");
    while (!rc && (entry = strsep(&rest, ","))) {
        entry = bare(entry);
        char *colon = strchr(entry, ':');
        if (!*entry)
            continue;
        if (colon)
            *colon = '\0';
        entry = bare(entry);
        if (!colon || !*entry || is_hint(entry)) {
            rc = no_pattern(entry, colon ? colon + 1 : NULL, err);
            break;
        }
        if (path && fnmatch(entry, path, 0) && fnmatch(entry, name, 0))
            continue;
        rc = hints_parse(hints, colon + 1, err);
        if (rc && err) {
            char text_before[sizeof err->text];
            memcpy(text_before, err->text, sizeof text_before);
            snprintf(err->text, sizeof err->text, "BRIGADE_IO, entry %.200s: %.800s", entry,
                     text_before);
        }
    }
    free(copy);
    return rc;
}
