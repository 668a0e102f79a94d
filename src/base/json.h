/* JSON text, appended piece by piece. A failed allocation is remembered and shows at json_print. */
#ifndef BRG_BASE_JSON_H
#define BRG_BASE_JSON_H

#include <stddef.h>

struct json {
    char *text;
    size_t n, room;
    int failed;
};

/* Appends formatted text as it is. */
void json_add(struct json *j, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Appends a quoted string. Bytes that are no UTF-8 become lone surrogates U+DC80 .. U+DCFF, as
 * Python's "surrogateescape" has them, so that any path survives. */
void json_add_string(struct json *j, const char *s, size_t n);

/* Writes the text and a newline to fd and empties it. Returns 0 or -errno. */
int json_print(struct json *j, int fd);

#endif
