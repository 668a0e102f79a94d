/* Filling a struct brg_error. */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set(struct brg_error *err, int code)
{
    err->code = code;
    err->rank = -1;
    err->offset = -1;
    err->path[0] = '\0';
}

int brg_error_set(struct brg_error *err, int code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        set(err, code);
    }
    return code;
}

int brg_error_system(struct brg_error *err, int code, const char *format, ...)
{
    if (err) {
        char words[128];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(err->text, sizeof err->text, format, args);
        va_end(args);
        /* The GNU strerror_r: thread-safe, and it may return a static string. */
        const char *text = strerror_r(-code, words, sizeof words);
        if (n >= 0 && (size_t)n < sizeof err->text)
            snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", text);
        set(err, code);
    }
    return code;
}
