/* See json.h. */
#include "base/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int make_room(struct json *j, size_t more)
{
    if (j->failed)
        return -1;
    if (j->n + more + 1 > j->room) {
        size_t room = (j->n + more + 1) * 2;
        char *text = realloc(j->text, room);
        if (!text) {
            j->failed = 1;
            return -1;
        }
        j->text = text;
        j->room = room;
    }
    return 0;
}

void json_add(struct json *j, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n < 0 || make_room(j, (size_t)n))
        return;
    va_start(args, format);
    vsnprintf(j->text + j->n, (size_t)n + 1, format, args);
    va_end(args);
    j->n += (size_t)n;
}

/* Length of the UTF-8 sequence at s, or 0 if there is none (overlong forms, surrogates). */
static size_t utf8_length(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char low, high, second_low, second_high, length;
    } forms[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
                 {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3},
                 {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                 {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (s[0] < forms[i].low || s[0] > forms[i].high || n < forms[i].length)
            continue;
        if (s[1] < forms[i].second_low || s[1] > forms[i].second_high)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

void json_add_string(struct json *j, const char *s, size_t n)
{
    const unsigned char *at = (const unsigned char *)s, *end = at + n;
    json_add(j, "\"");
    while (at < end) {
        size_t length = 1;
        if (*at == '"' || *at == '\\')
            json_add(j, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            json_add(j, "\\u%04x", *at);
        else if (*at < 0x80)
            json_add(j, "%c", *at);
        else if ((length = utf8_length(at, (size_t)(end - at))) > 0)
            json_add(j, "%.*s", (int)length, (const char *)at);
        else {
            json_add(j, "\\udc%02x", *at);
            length = 1;
        }
        at += length;
    }
    json_add(j, "\"");
}

int json_print(struct json *j, int fd)
{
    int rc = 0;
    json_add(j, "\n");
    if (j->failed)
        rc = -ENOMEM;
    for (size_t done = 0; done < j->n && !rc;) {
        ssize_t n = write(fd, j->text + done, j->n - done);
        if (n < 0 && errno != EINTR)
            rc = -errno;
        else if (n > 0)
            done += (size_t)n;
    }
    free(j->text);
    memset(j, 0, sizeof *j);
    return rc;
}
