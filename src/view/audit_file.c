/* What the auditor asks of files. See audit_file.h. */
#include "view/audit_file.h"
#include "base/sys.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

/* 0 if the file is none of ELF, or cannot be read. */
static int read_header(const char *path, ElfW(Ehdr) * head)
{
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    long n = sys_read(fd, head, sizeof *head);
    sys_close(fd);
    return n == (long)sizeof *head && memcmp(head->e_ident, ELFMAG, SELFMAG) == 0;
}

int audit_is_there(const char *path)
{
    return sys_access(path, R_OK) == 0;
}

int audit_is_elf(const char *path)
{
    ElfW(Ehdr) head;
    return read_header(path, &head);
}

int audit_is_loadable(const char *path)
{
    ElfW(Ehdr) head;
    if (!read_header(path, &head))
        return 0;
#ifdef __x86_64__
    const int machine = EM_X86_64;
#else
    const int machine = EM_AARCH64;
#endif
    return head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_machine == machine;
}
