/* Looking through the tables that ld.so itself uses. See next_definition.h. */
#include "base/next_definition.h"
#include "base/object.h"
#include "base/text.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>

#define HIDDEN_VERSION 0x8000u

struct tables {
    uintptr_t base;
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu, *sysv;        /* hash tables; one of them is enough */
    const uint16_t *versions;          /* or NULL */
    const ElfW(Rela) * slots, *places; /* what ld.so fills: calls, and all else */
    size_t slots_bytes, places_bytes;
};

struct search {
    const char *name;
    const void *own; /* code of the caller's object */
    int after;       /* that object */
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
        case DT_JMPREL: t.slots = pointer(t.base, d->d_un.d_ptr); break;
        case DT_PLTRELSZ: t.slots_bytes = d->d_un.d_val; break;
        case DT_RELA: t.places = pointer(t.base, d->d_un.d_ptr); break;
        case DT_RELASZ: t.places_bytes = d->d_un.d_val; break;
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
    const ElfW(Addr) *bloom = (const void *)(t->gnu + 4);
    const uint32_t *bucket = (const void *)(bloom + words);
    const uint32_t *chain = bucket + buckets;
    for (const char *c = name; *c; c++)
        hash = hash * 33 + (unsigned char)*c;
    const uint32_t bits = 8 * sizeof *bloom;
    ElfW(Addr) word = bloom[hash / bits & (words - 1)];
    if (!(word >> hash % bits & word >> (hash >> t->gnu[3]) % bits & 1))
        return NULL; /* most objects have none of this name */
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

static const ElfW(Sym) * find_in(const struct dl_phdr_info *object, const char *name)
{
    struct tables t = tables_of(object);
    if (!t.symbols || !t.strings || object->dlpi_addr == getauxval(AT_SYSINFO_EHDR))
        return NULL; /* the kernel's own object is nobody's to link with */
    return t.gnu ? find_gnu(&t, name) : t.sysv ? find_sysv(&t, name) : NULL;
}

int is_defined_by(const struct dl_phdr_info *object, const char *name)
{
    return find_in(object, name) != NULL;
}

static int look(struct dl_phdr_info *object, size_t size, void *context)
{
    struct search *search = context;
    (void)size;
    if (!search->after) {
        search->after = object_has(object, search->own);
        return 0;
    }
    const ElfW(Sym) *s = find_in(object, search->name);
    if (!s)
        return 0;
    search->found = (void *)(object->dlpi_addr + s->st_value);
    return 1;
}

void *next_definition(const char *name)
{
    static const char here;
    struct search search = {.name = name, .own = &here};
    dl_iterate_phdr(look, &search);
    return search.found;
}

int is_defined_by_any(const char *name)
{
    struct search search = {.name = name, .after = 1};
    return dl_iterate_phdr(look, &search);
}

static int has_place_for(const struct tables *t, const ElfW(Rela) * list, size_t bytes,
                         const char *name)
{
    for (size_t i = 0; list && i < bytes / sizeof *list; i++) {
        size_t symbol = ELF64_R_SYM(list[i].r_info);
        if (symbol && text_same(t->strings + t->symbols[symbol].st_name, name))
            return 1;
    }
    return 0;
}

static int look_for_use(struct dl_phdr_info *object, size_t size, void *context)
{
    struct tables t = tables_of(object);
    (void)size;
    return t.symbols && t.strings && object->dlpi_addr != getauxval(AT_SYSINFO_EHDR) &&
           (has_place_for(&t, t.slots, t.slots_bytes, context) ||
            has_place_for(&t, t.places, t.places_bytes, context));
}

int is_used_by_any(const char *name)
{
    return dl_iterate_phdr(look_for_use, (void *)(uintptr_t)name);
}

/* Whether RTLD_NEXT gives the default version. */
static int gives_default(void)
{
    static int known; /* 1: yes, -1: no */
    if (!known) {
        const char *version = gnu_get_libc_version(); /* 2.36 */
        known = strtol(version, NULL, 10) > 2 || strtol(version + 2, NULL, 10) >= 36 ? 1 : -1;
    }
    return known > 0;
}

void *next_function(const char *name)
{
    int saved = errno;
    void *found = gives_default() ? NULL : next_definition(name);
    if (!found && !(found = dlsym(RTLD_NEXT, name)))
        dlerror(); /* the program must not find our question's error */
    errno = saved;
    return found;
}
