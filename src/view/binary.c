/* Judging a program by its ELF file. See binary.h. */
#include "view/binary.h"
#include "base/sys.h"
#include "base/text.h"

#include <elf.h>
#include <limits.h>

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#define LOADER "/lib64/ld-linux-x86-64.so.2"
#else
#define MACHINE EM_AARCH64
#define LOADER "/lib/ld-linux-aarch64.so.1"
#endif

enum {
    MAX_PROGRAM_HEADERS = 32,
    DYNAMIC_AT_ONCE = 64,
    MAX_DYNAMIC = 1024,
    MAX_NOTES = 16,
    GO_BUILD_ID = 4
};

struct elf {
    int fd, n;
    Elf64_Phdr headers[MAX_PROGRAM_HEADERS];
};

/* Whether exactly `size` bytes could be read. */
static int read_at(int fd, uint64_t offset, void *buf, size_t size)
{
    return sys_pread(fd, buf, size, (int64_t)offset) == (long)size;
}

static const Elf64_Phdr *find_segment(const struct elf *e, uint32_t type)
{
    for (int i = 0; i < e->n; i++)
        if (e->headers[i].p_type == type)
            return &e->headers[i];
    return NULL;
}

/* Where in the file the byte is that will lie at `address`; 0 if nowhere. */
static uint64_t file_offset(const struct elf *e, uint64_t address)
{
    for (int i = 0; i < e->n; i++) {
        const Elf64_Phdr *p = &e->headers[i];
        if (p->p_type == PT_LOAD && address >= p->p_vaddr && address - p->p_vaddr < p->p_filesz)
            return p->p_offset + (address - p->p_vaddr);
    }
    return 0;
}

/* Whether the interpreter is the ld.so that Brigade's libraries are made for. */
static int is_our_loader(const struct elf *e, const Elf64_Phdr *interpreter)
{
    char path[256];
    struct stat theirs, ours;
    size_t n = interpreter->p_filesz;
    if (n < 2 || n > sizeof path || !read_at(e->fd, interpreter->p_offset, path, n))
        return 1;
    path[n - 1] = '\0';
    if (text_same(path, LOADER))
        return 1;
    return sys_stat(LOADER, &ours) != 0 || sys_stat(path, &theirs) != 0 ||
           (ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino);
}

/* Whether a note of this segment says that Go's linker made the file. A note: the lengths of name
 * and content, a type, the name, the content; both padded to the segment's alignment. */
static int has_go_note(const struct elf *e, const Elf64_Phdr *segment)
{
    uint64_t pad = segment->p_align == 8 ? 7 : 3, at = 0;
    struct {
        Elf64_Nhdr head;
        char name[4];
    } note;
    for (int i = 0; i < MAX_NOTES && at + sizeof note <= segment->p_filesz; i++) {
        if (!read_at(e->fd, segment->p_offset + at, &note, sizeof note))
            return 0;
        if (note.head.n_namesz == sizeof note.name && note.head.n_type == GO_BUILD_ID &&
            memcmp(note.name, "Go\0\0", sizeof note.name) == 0)
            return 1;
        at += (sizeof note.head + note.head.n_namesz + pad) & ~pad;
        at = (at + note.head.n_descsz + pad) & ~pad;
    }
    return 0;
}

static int is_go(const struct elf *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->headers[i].p_type == PT_NOTE && has_go_note(e, &e->headers[i]))
            return 1;
    return 0;
}

static int is_sanitizer(const char *library)
{
    static const char *const names[] = {"libasan.", "libhwasan.", "liblsan.", "libtsan.",
                                        "libclang_rt."};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (text_starts(library, names[i]))
            return 1;
    return 0;
}

/* Calls `each` for the entries of the dynamic section, in pieces; stops when it returns nonzero,
 * which is then the result. */
static int walk_dynamic(const struct elf *e,
                        int each(const struct elf *, const Elf64_Dyn *, void *), void *with)
{
    Elf64_Dyn some[DYNAMIC_AT_ONCE];
    const Elf64_Phdr *dynamic = find_segment(e, PT_DYNAMIC);
    size_t left = dynamic ? dynamic->p_filesz / sizeof *some : 0;
    uint64_t at = dynamic ? dynamic->p_offset : 0;
    if (left > MAX_DYNAMIC)
        left = MAX_DYNAMIC;
    while (left > 0) {
        size_t n = left < DYNAMIC_AT_ONCE ? left : DYNAMIC_AT_ONCE;
        if (!read_at(e->fd, at, some, n * sizeof *some))
            return 0;
        for (size_t i = 0; i < n; i++) {
            if (some[i].d_tag == DT_NULL)
                return 0;
            int result = each(e, &some[i], with);
            if (result)
                return result;
        }
        left -= n;
        at += n * sizeof *some;
    }
    return 0;
}

static int find_strings(const struct elf *e, const Elf64_Dyn *d, void *offset)
{
    if (d->d_tag != DT_STRTAB)
        return 0;
    *(uint64_t *)offset = file_offset(e, d->d_un.d_ptr);
    return 1;
}

static int needs_sanitizer(const struct elf *e, const Elf64_Dyn *d, void *strings)
{
    char name[16];
    if (d->d_tag != DT_NEEDED)
        return 0;
    long n = sys_pread(e->fd, name, sizeof name - 1,
                       (int64_t)(*(const uint64_t *)strings + d->d_un.d_val));
    name[n > 0 ? n : 0] = '\0';
    return is_sanitizer(name);
}

static int has_sanitizer(const struct elf *e)
{
    uint64_t strings = 0;
    return walk_dynamic(e, find_strings, &strings) && strings &&
           walk_dynamic(e, needs_sanitizer, &strings);
}

enum binary_start binary_inspect(int fd, const char *head, size_t n)
{
    Elf64_Ehdr ehdr;
    struct elf e = {.fd = fd};
    if (n < EI_NIDENT || memcmp(head, ELFMAG, SELFMAG) != 0)
        return BINARY_JOINS;
    if (head[EI_CLASS] != ELFCLASS64 || n < sizeof ehdr)
        return BINARY_ALONE;
    memcpy(&ehdr, head, sizeof ehdr);
    if (ehdr.e_machine != MACHINE)
        return BINARY_ALONE;
    e.n = ehdr.e_phnum;
    if (ehdr.e_phentsize != sizeof *e.headers || e.n > MAX_PROGRAM_HEADERS ||
        !read_at(fd, ehdr.e_phoff, e.headers, (size_t)e.n * sizeof *e.headers))
        return BINARY_JOINS;
    const Elf64_Phdr *interpreter = find_segment(&e, PT_INTERP);
    if (!interpreter)
        return BINARY_IN_PLACE;
    if (!is_our_loader(&e, interpreter) || has_sanitizer(&e))
        return BINARY_ALONE;
    return is_go(&e) ? BINARY_IN_PLACE : BINARY_JOINS;
}
