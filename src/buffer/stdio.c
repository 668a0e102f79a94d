/* glibc's streams: reached at their lowest level.
 *
 * A FILE reads and writes by system calls of its own, which no preloaded function sees. But it does
 * so through a table of functions that all file streams share, of which the last few entries are
 * read, write, seek, close and stat of the descriptor. These five are replaced by ours in the two
 * tables (narrow and wide), once, at the start; everything above (buffers, ungetc, line buffering,
 * positions, locking) stays glibc's own, so nothing of it can differ. Ours do for a descriptor that
 * is not buffered what glibc's do.
 *
 * The tables lie in memory that ld.so has made read-only; it is writable for a moment. Nothing is
 * touched unless all five entries are, in both tables, exactly the functions that glibc exports
 * under those names: then the layout is the one we know. Else streams are left alone.
 */
#include "buffer/hooks.h"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

int stdio_hooked;

enum slot {
    SLOT_READ = 14,
    SLOT_WRITE,
    SLOT_SEEK,
    SLOT_CLOSE,
    SLOT_STAT,
    SLOTS = 21
};

static ssize_t (*next_read)(FILE *, void *, ssize_t);
static ssize_t (*next_write)(FILE *, const void *, ssize_t);
static off64_t (*next_seek)(FILE *, off64_t, int);
static int (*next_close)(FILE *);
static int (*next_stat)(FILE *, void *);

static ssize_t stream_read(FILE *stream, void *buf, ssize_t n)
{
    return IS_OURS(stream->_fileno) ? hook_read(stream->_fileno, buf, (size_t)n)
                                    : next_read(stream, buf, n);
}

/* As _IO_new_file_write: until all is written, or an error, which the stream remembers. */
static ssize_t stream_write(FILE *stream, const void *buf, ssize_t n)
{
    ssize_t left_bytes = n;
    if (!IS_OURS(stream->_fileno))
        return next_write(stream, buf, n);
    while (left_bytes > 0) {
        ssize_t r = hook_write(stream->_fileno, buf, (size_t)left_bytes);
        if (r < 0) {
            stream->_flags |= 0x20; /* _IO_ERR_SEEN */
            break;
        }
        left_bytes -= r;
        buf = (const char *)buf + r;
    }
    n -= left_bytes;
    if (stream->_offset >= 0)
        stream->_offset += n;
    return n;
}

static off64_t stream_seek(FILE *stream, off64_t at, int whence)
{
    return IS_OURS(stream->_fileno) ? hook_lseek(stream->_fileno, at, whence)
                                    : next_seek(stream, at, whence);
}
static int stream_close(FILE *stream)
{
    return IS_OURS(stream->_fileno) ? hook_close(stream->_fileno) : next_close(stream);
}
static int stream_stat(FILE *stream, void *st)
{
    return IS_OURS(stream->_fileno) ? hook_fstat(stream->_fileno, st) : next_stat(stream, st);
}

/* Whether ld.so has made what is at `address` read-only after it had filled it: before glibc 2.29
 * the tables lie beside what the C library writes to. */
static int look_for_relro(struct dl_phdr_info *object, size_t size, void *address)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)address;
    (void)size;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        uintptr_t end = begin + object->dlpi_phdr[i].p_memsz;
        if (object->dlpi_phdr[i].p_type == PT_GNU_RELRO && at >= (begin & ~(page - 1)) &&
            at < (end & ~(page - 1)))
            return 1;
    }
    return 0;
}

/* Replaces the five in one table; 0 if it is not what we know. */
static int replace(void **slots, void *const theirs[5], void *const ours[5], int really)
{
    for (int i = 0; i < 5; i++)
        if (!theirs[i] || slots[SLOT_READ + i] != theirs[i])
            return 0;
    if (!really)
        return 1;
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), begin = (uintptr_t)slots & ~(page - 1);
    size_t bytes = ((uintptr_t)(slots + SLOTS) + page - 1) / page * page - begin;
    int closed = dl_iterate_phdr(look_for_relro, slots);
    if (closed &&
        sys_call(SYS_mprotect, (long)begin, (long)bytes, PROT_READ | PROT_WRITE, 0, 0, 0) < 0)
        return 0;
    for (int i = 0; i < 5; i++)
        __atomic_store_n(&slots[SLOT_READ + i], ours[i], __ATOMIC_RELEASE);
    if (closed)
        sys_call(SYS_mprotect, (long)begin, (long)bytes, PROT_READ, 0, 0, 0);
    return 1;
}

void stdio_start(void)
{
    static const char *const names[5] = {"_IO_file_read", "_IO_file_write", "_IO_file_seek",
                                         "_IO_file_close", "_IO_file_stat"};
    void *const ours[5] = {(void *)stream_read, (void *)stream_write, (void *)stream_seek,
                           (void *)stream_close, (void *)stream_stat};
    void *theirs[5], **narrow = real_find("_IO_file_jumps"), **wide = real_find("_IO_wfile_jumps");
    for (int i = 0; i < 5; i++)
        theirs[i] = real_find(names[i]);
    if (!narrow || !wide || !replace(narrow, theirs, ours, 0) || !replace(wide, theirs, ours, 0))
        return;
    next_read = (ssize_t(*)(FILE *, void *, ssize_t))theirs[0];
    next_write = (ssize_t(*)(FILE *, const void *, ssize_t))theirs[1];
    next_seek = (off64_t(*)(FILE *, off64_t, int))theirs[2];
    next_close = (int (*)(FILE *))theirs[3];
    next_stat = (int (*)(FILE *, void *))theirs[4];
    stdio_hooked = replace(narrow, theirs, ours, 1) && replace(wide, theirs, ours, 1);
}
