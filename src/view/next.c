/* Looking through the tables that ld.so itself uses. See next.h. */
#include "view/next.h"
#include "base/text.h"

#include <elf.h>
#include <link.h>
#include <stdint.h>
#include <sys/auxv.h>

#define HIDDEN_VERSION 0x8000u

struct tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu, *sysv; /* hash tables; one of them is enough */
    const uint16_t *versions;   /* or NULL */
};

struct search {
    const char *name;
    uintptr_t own;
    int after; /* the caller's object */
    void *found;
};

/* ld.so puts addresses in the place of offsets, but for what it may not write to. */
static const void *pointer(uintptr_t base, uintptr_t value)
{
    return (const void *)(value < base ? base + value : value);
}

static struct tables tables_of(const struct dl_phdr_info *object)
{
    struct tables t = {.base = object->dlpi_addr};
    const ElfW(Dyn) *d = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            d = (const void *)(t.base + object->dlpi_phdr[i].p_vaddr);
    for (; d && d->d_tag != DT_NULL; d++)
        switch (d->d_tag) {
        case DT_SYMTAB: t.symbols = pointer(t.base, d->d_un.d_ptr); break;
        case DT_STRTAB: t.strings = pointer(t.base, d->d_un.d_ptr); break;
        case DT_GNU_HASH: t.gnu = pointer(t.base, d->d_un.d_ptr); break;
        case DT_HASH: t.sysv = pointer(t.base, d->d_un.d_ptr); break;
        case DT_VERSYM: t.versions = pointer(t.base, d->d_un.d_ptr); break;
        default: break;
        }
    return t;
}

static const ElfW(Sym) * fits(const struct tables *t, uint32_t i, const char *name)
{
    const ElfW(Sym) *s = &t->symbols[i];
    if (s->st_shndx == SHN_UNDEF || ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC || !s->st_value ||
        (t->versions && t->versions[i] & HIDDEN_VERSION))
        return NULL;
    return text_same(t->strings + s->st_name, name) ? s : NULL;
}

static const ElfW(Sym) * find_gnu(const struct tables *t, const char *name)
{
    uint32_t hash = 5381, buckets = t->gnu[0], first = t->gnu[1], words = t->gnu[2];
    const uint32_t *bucket = t->gnu + 4 + words * (sizeof(ElfW(Addr)) / sizeof *bucket);
    const uint32_t *chain = bucket + buckets;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    uint32_t i = buckets ? bucket[hash % buckets] : 0;
    for (; i >= first && i; i++) {
        uint32_t here = chain[i - first];
        const ElfW(Sym) *s = (here | 1) == (hash | 1) ? fits(t, i, name) : NULL;
        if (s || here & 1) /* found, or the last one of the chain */
            return s;
    }
    return NULL;
}

static const ElfW(Sym) * find_sysv(const struct tables *t, const char *name)
{
    for (uint32_t i = 0; i < t->sysv[1]; i++) {
        const ElfW(Sym) *s = fits(t, i, name);
        if (s)
            return s;
    }
    return NULL;
}

static int holds(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return 1;
    }
    return 0;
}

static int look(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    if (!search->after) {
        search->after = holds(object, search->own);
        return 0;
    }
    struct tables t = tables_of(object);
    if (!t.symbols || !t.strings || object->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
        return 0; /* the kernel's own object is nobody's to link with */
    const ElfW(Sym) *s = t.gnu    ? find_gnu(&t, search->name)
                         : t.sysv ? find_sysv(&t, search->name)
                                  : NULL;
    if (!s)
        return 0;
    search->found = (void *)(t.base + s->st_value);
    return 1;
}

void *next_definition(const char *name, const void *own)
{
    struct search search = {.name = name, .own = (uintptr_t)own};
    dl_iterate_phdr(look, &search);
    return search.found;
}
