/* Text without a libc: bounded building of strings, numbers, prefixes. */
#ifndef BRG_BASE_TEXT_H
#define BRG_BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Appends to a caller's buffer. Once something does not fit, `full` stays set and the text is
 * unusable; it is always NUL-terminated. */
struct text {
    char *at;
    size_t len, size;
    int full;
};

static inline struct text text_in(char *buf, size_t size)
{
    struct text t = {buf, 0, size, 0};
    buf[0] = '\0';
    return t;
}
static inline void text_bytes(struct text *t, const char *s, size_t n)
{
    if (t->full || n >= t->size - t->len) {
        t->full = 1;
        return;
    }
    memcpy(t->at + t->len, s, n);
    t->len += n;
    t->at[t->len] = '\0';
}
static inline void text_add(struct text *t, const char *s)
{
    text_bytes(t, s, strlen(s));
}
/* With its NUL, so that several strings can follow each other. */
static inline void text_field(struct text *t, const char *s)
{
    text_bytes(t, s, strlen(s) + 1);
}
static inline void text_number(struct text *t, uint64_t value, unsigned base)
{
    char digits[24], *p = digits + sizeof digits;
    size_t n = 0;
    do {
        *--p = (char)('0' + value % base);
        n++;
    } while (value /= base);
    text_bytes(t, p, n);
}
static inline void text_signed(struct text *t, int64_t value)
{
    if (value < 0)
        text_bytes(t, "-", 1);
    text_number(t, value < 0 ? (uint64_t)-value : (uint64_t)value, 10);
}

static inline int text_starts(const char *s, const char *prefix)
{
    while (*prefix)
        if (*s++ != *prefix++)
            return 0;
    return 1;
}
static inline int text_same(const char *a, const char *b)
{
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}
/* The same where there may be none. */
static inline int text_alike(const char *a, const char *b)
{
    return a && b ? text_same(a, b) : a == b;
}
/* The most bytes that lie between two separators. */
static inline size_t text_longest(const char *s, char separator)
{
    size_t longest = 0, n = 0;
    for (; *s; s++) {
        n = *s == separator ? 0 : n + 1;
        longest = n > longest ? n : longest;
    }
    return longest;
}
/* Whether it is one of the names, behind which stands NULL. */
static inline int text_is_one_of(const char *s, const char *const names[])
{
    while (*names && !text_same(s, *names))
        names++;
    return *names != NULL;
}
/* What follows the last slash. */
static inline const char *text_base(const char *path)
{
    const char *base = path;
    for (; *path; path++)
        if (*path == '/')
            base = path + 1;
    return base;
}
/* A decimal number, or `otherwise` if `s` is NULL, empty or something else. */
static inline int64_t text_to_number(const char *s, int64_t otherwise)
{
    int64_t value = 0;
    if (!s || !*s)
        return otherwise;
    for (; *s; s++) {
        if (*s < '0' || *s > '9' || value > INT64_MAX / 10 - 1)
            return otherwise;
        value = value * 10 + (*s - '0');
    }
    return value;
}
/* The number behind `name` at the start of a line, as in files of /proc; 0 if there is none. */
static inline uint64_t text_line_number(const char *text, const char *name)
{
    uint64_t value = 0;
    while (*text && !text_starts(text, name)) {
        while (*text && *text != '\n')
            text++;
        text += *text == '\n';
    }
    if (!*text)
        return 0;
    for (text += strlen(name); *text == ' ' || *text == '\t'; text++)
        ;
    for (; *text >= '0' && *text <= '9'; text++)
        value = 10 * value + (uint64_t)(*text - '0');
    return value;
}

#endif
