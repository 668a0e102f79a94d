/* brigade-audited: what this C library's own defects with auditors do here. probe.c runs it under
 * the interpose view.
 *
 * Before glibc 2.35, a call that is bound when it is first made goes through ld.so for ever where
 * an auditor is, though none asks for that (bug 15533), and dlmopen into a new namespace ends the
 * process (bug 28062). Some distributions have both mended in older versions, so it is tried.
 *
 * Exit status: the sum of the enum's.
 */
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "view/audited.h"

/* Whether, after a call, the slot for it of the program holds the function itself. */
static int is_bound(void)
{
    const char *strings = NULL;
    const ElfW(Sym) *symbols = NULL;
    const ElfW(Rela) *slots = NULL;
    size_t bytes = 0;
    const struct link_map *me = dlopen(NULL, RTLD_NOW);
    for (const ElfW(Dyn) *d = me ? me->l_ld : NULL; d && d->d_tag != DT_NULL; d++)
        switch (d->d_tag) {
        case DT_STRTAB: strings = (const char *)d->d_un.d_ptr; break;
        case DT_SYMTAB: symbols = (const ElfW(Sym) *)d->d_un.d_ptr; break;
        case DT_JMPREL: slots = (const ElfW(Rela) *)d->d_un.d_ptr; break;
        case DT_PLTRELSZ: bytes = d->d_un.d_val; break;
        default: break;
        }
    getppid();
    for (size_t i = 0; strings && symbols && i < bytes / sizeof *slots; i++)
        if (strcmp(strings + symbols[ELF64_R_SYM(slots[i].r_info)].st_name, "getppid") == 0)
            return *(void **)(me->l_addr + slots[i].r_offset) == dlsym(RTLD_DEFAULT, "getppid");
    return 1; /* it was bound as the program was loaded */
}

static int survives_namespaces(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit none = {1, 1}; /* of 1 byte: 0 is no limit of what a pipe takes */
        setrlimit(RLIMIT_CORE, &none);
        (void)dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
        _exit(0);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status == 0;
}

int main(void)
{
    return (is_bound() ? 0 : AUDITED_CALLS) + (survives_namespaces() ? 0 : AUDITED_NAMESPACES);
}
