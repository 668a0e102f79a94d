/* Words to standard output and standard error, which a rank that is forked later would not say, or
 * say a second time. Nothing is no word: a constructor of TensorFlow prints "". See watch.h.
 */
#include "view/watch.h"
#include "base/sys.h"

#include <errno.h>

static void note_fd(int fd)
{
    if (fd == 1 || fd == 2)
        watch_note("output", fd == 1 ? "1" : "2");
}

static void note_stream(const FILE *stream)
{
    if (stream == stdout)
        note_fd(1);
    else if (stream == stderr)
        note_fd(2);
}

/* What a function has returned that says how many bytes it put into the stream. */
static int said(int n, const FILE *stream)
{
    if (n != 0)
        note_stream(stream);
    return n;
}

ssize_t watch_write(int fd, const void *bytes, size_t n)
{
    const struct watched_calls *real = watch_real();
    if (n > 0)
        note_fd(fd);
    return real->write ? real->write(fd, bytes, n) : sys_write(fd, bytes, n);
}

ssize_t watch_writev(int fd, const struct iovec *parts, int n)
{
    const struct watched_calls *real = watch_real();
    note_fd(fd);
    return real->writev ? real->writev(fd, parts, n) : -1;
}

/* The functions of streams, of which the first caller finds the real ones (a constructor has): one
 * that is not there is one that nobody could call. */
size_t watch_fwrite(const void *bytes, size_t size, size_t n, FILE *stream)
{
    if (size > 0 && n > 0)
        note_stream(stream);
    return watch_real()->fwrite(bytes, size, n, stream);
}

int watch_fputs(const char *text, FILE *stream)
{
    if (*text)
        note_stream(stream);
    return watch_real()->fputs(text, stream);
}

int watch_fputc(int c, FILE *stream)
{
    note_stream(stream);
    return watch_real()->fputc(c, stream);
}

int watch_putc(int c, FILE *stream)
{
    note_stream(stream);
    return watch_real()->putc(c, stream);
}

int watch_puts(const char *text)
{
    note_fd(1);
    return watch_real()->puts(text);
}

int watch_putchar(int c)
{
    note_fd(1);
    return watch_real()->putchar(c);
}

void watch_perror(const char *text)
{
    note_fd(2);
    watch_real()->perror(text);
}

int watch_vprintf(const char *format, va_list args)
{
    return said(watch_real()->vprintf(format, args), stdout);
}

int watch_vfprintf(FILE *stream, const char *format, va_list args)
{
    return said(watch_real()->vfprintf(stream, format, args), stream);
}

int watch___vprintf_chk(int flag, const char *format, va_list args)
{
    return said(watch_real()->__vprintf_chk(flag, format, args), stdout);
}

int watch___vfprintf_chk(FILE *stream, int flag, const char *format, va_list args)
{
    return said(watch_real()->__vfprintf_chk(stream, flag, format, args), stream);
}

int watch_vdprintf(int fd, const char *format, va_list args)
{
    note_fd(fd);
    return watch_real()->vdprintf(fd, format, args);
}

int watch___vdprintf_chk(int fd, int flag, const char *format, va_list args)
{
    note_fd(fd);
    return watch_real()->__vdprintf_chk(fd, flag, format, args);
}

size_t watch_fwrite_unlocked(const void *bytes, size_t size, size_t n, FILE *stream)
{
    if (size > 0 && n > 0)
        note_stream(stream);
    return (watch_real()->fwrite_unlocked)(bytes, size, n, stream); /* no macro */
}

int watch_fputs_unlocked(const char *text, FILE *stream)
{
    if (*text)
        note_stream(stream);
    return watch_real()->fputs_unlocked(text, stream);
}

int watch_fputc_unlocked(int c, FILE *stream)
{
    note_stream(stream);
    return watch_real()->fputc_unlocked(c, stream);
}

int watch_putc_unlocked(int c, FILE *stream)
{
    note_stream(stream);
    return watch_real()->putc_unlocked(c, stream);
}

int watch_putchar_unlocked(int c)
{
    note_fd(1);
    return watch_real()->putchar_unlocked(c);
}

int watch_fputws(const wchar_t *text, FILE *stream)
{
    if (*text)
        note_stream(stream);
    return watch_real()->fputws(text, stream);
}

/* What has its arguments in `...` is what has them in a va_list. */
#define PASS_ON(call)       \
    va_list args;           \
    va_start(args, format); \
    int n = call;           \
    va_end(args);           \
    return n

int watch_printf(const char *format, ...)
{
    PASS_ON(watch_vprintf(format, args));
}

int watch_fprintf(FILE *stream, const char *format, ...)
{
    PASS_ON(watch_vfprintf(stream, format, args));
}

int watch___printf_chk(int flag, const char *format, ...)
{
    PASS_ON(watch___vprintf_chk(flag, format, args));
}

int watch___fprintf_chk(FILE *stream, int flag, const char *format, ...)
{
    PASS_ON(watch___vfprintf_chk(stream, flag, format, args));
}

int watch_dprintf(int fd, const char *format, ...)
{
    PASS_ON(watch_vdprintf(fd, format, args));
}

int watch___dprintf_chk(int fd, int flag, const char *format, ...)
{
    PASS_ON(watch___vdprintf_chk(fd, flag, format, args));
}
