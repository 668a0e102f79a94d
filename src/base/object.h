/* What dl_iterate_phdr() tells of a loaded object. Unlike dladdr() that waits for no thread that
 * executes constructors. */
#ifndef BRG_BASE_OBJECT_H
#define BRG_BASE_OBJECT_H

#include <link.h>
#include <stdint.h>

static inline int object_has(const struct dl_phdr_info *object, const void *code)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = object->dlpi_phdr + i;
        if (part->p_type == PT_LOAD &&
            (uintptr_t)code - (object->dlpi_addr + part->p_vaddr) < part->p_memsz)
            return 1;
    }
    return 0;
}

/* Bytes that its file has at least: its segments end there. */
static inline uint64_t object_length(const struct dl_phdr_info *object)
{
    uint64_t length = 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = object->dlpi_phdr + i;
        if (part->p_type == PT_LOAD && length < part->p_offset + part->p_filesz)
            length = part->p_offset + part->p_filesz;
    }
    return length;
}

#endif
