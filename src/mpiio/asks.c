/* See asks.h. A name that an object takes from others is among its symbols, before those that its
 * hash table lists, which are what it offers: some hundred, where relocations may be hundreds of
 * thousands. An object that offers nothing has a table that says nothing of where they end; then
 * the name is looked for in the relocations. */
#include "mpiio/asks.h"

#include <link.h>
#include <pthread.h>
#include <string.h>
#include <strings.h>

#define SYMBOL_OF(info) (sizeof(void *) == 8 ? (info) >> 32 : (info) >> 8)

static const char *const calls[N_ASKS][5] = {
    [ASKS_HINTS] = {"MPI_File_get_info"},
    [ASKS_SHARED] = {"MPI_File_read_shared", "MPI_File_write_shared", "MPI_File_iread_shared",
                     "MPI_File_iwrite_shared"},
};

struct search {
    const char *const *names;  /* to NULL */
    unsigned long long loaded; /* objects, ever */
    int found;
};

/* Those of the MPI and of ours, which offer it, or hand it on for Fortran. */
static int is_of_mpi(const char *path)
{
    static const char *const begins[] = {"libmpi", "libopen-", "mca_", "libbrigade_"};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
        if (strncmp(name, begins[i], strlen(begins[i])) == 0)
            return 1;
    return 0;
}

/* Most are not, and there are tens of thousands. */
static int may_be_of_mpi(const char *symbol)
{
    symbol += (*symbol | 0x20) == 'p';
    return (symbol[0] | 0x20) == 'm' && (symbol[1] | 0x20) == 'p' && (symbol[2] | 0x20) == 'i';
}

/* C's are of large counts, too. Fortran's names are in small letters and end in something of the
 * compiler's, or of the binding's. */
static int is_name(const char *symbol, const char *name)
{
    symbol += *symbol == 'P' || *symbol == 'p';
    size_t n = strlen(name);
    return strncmp(symbol, name, n) == 0
               ? !symbol[n] || strcmp(symbol + n, "_c") == 0
               : strncasecmp(symbol, name, n) == 0 && (!symbol[n] || symbol[n] == '_');
}

static int is_one_of(const char *symbol, const char *const *names)
{
    if (!may_be_of_mpi(symbol))
        return 0;
    while (*names && !is_name(symbol, *names))
        names++;
    return *names != NULL;
}

struct tables {
    const ElfW(Sym) * symbols;
    const char *strings;
    size_t string_bytes;
    const uint32_t *hash; /* DT_GNU_HASH: buckets, the first symbol that is listed, ... */
    const ElfW(Rela) * of_data, *of_calls;
    size_t data_bytes, call_bytes;
    int calls_are_rela;
};

/* Where the loader has left an address in the file's words, it is one from the object's base. */
static const void *at(const struct dl_phdr_info *object, const ElfW(Dyn) * d)
{
    ElfW(Addr) address = d->d_un.d_ptr;
    return (const void *)(address < object->dlpi_addr ? address + object->dlpi_addr : address);
}

static void find_tables(const struct dl_phdr_info *object, const ElfW(Dyn) * d, struct tables *t)
{
    for (; d->d_tag != DT_NULL; d++)
        switch (d->d_tag) {
        case DT_SYMTAB: t->symbols = at(object, d); break;
        case DT_STRTAB: t->strings = at(object, d); break;
        case DT_STRSZ: t->string_bytes = d->d_un.d_val; break;
        case DT_GNU_HASH: t->hash = at(object, d); break;
        case DT_RELA: t->of_data = at(object, d); break;
        case DT_RELASZ: t->data_bytes = d->d_un.d_val; break;
        case DT_JMPREL: t->of_calls = at(object, d); break;
        case DT_PLTRELSZ: t->call_bytes = d->d_un.d_val; break;
        case DT_PLTREL: t->calls_are_rela = d->d_un.d_val == DT_RELA; break;
        default: break;
        }
}

static int is_named(const struct tables *t, size_t symbol, const char *const *names)
{
    return symbol && t->symbols[symbol].st_name < t->string_bytes &&
           is_one_of(t->strings + t->symbols[symbol].st_name, names);
}

static int refers(const struct tables *t, const ElfW(Rela) * list, size_t bytes,
                  const char *const *names)
{
    for (size_t i = 0; list && i < bytes / sizeof *list; i++)
        if (is_named(t, SYMBOL_OF(list[i].r_info), names))
            return 1;
    return 0;
}

static int takes(const struct tables *t, const char *const *names)
{
    size_t listed = t->hash ? t->hash[1] : 0;
    for (size_t i = 1; i < listed; i++)
        if (is_named(t, i, names))
            return 1;
    if (listed > 1)
        return 0;
    return refers(t, t->of_data, t->data_bytes, names) ||
           (t->calls_are_rela && refers(t, t->of_calls, t->call_bytes, names));
}

static int look(struct dl_phdr_info *object, size_t size, void *search)
{
    struct search *s = search;
    (void)size;
    s->loaded = object->dlpi_adds;
    if (is_of_mpi(object->dlpi_name))
        return 0;
    for (int i = 0; i < object->dlpi_phnum && !s->found; i++) {
        struct tables t = {.symbols = NULL};
        if (object->dlpi_phdr[i].p_type != PT_DYNAMIC)
            continue;
        find_tables(object, (void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr), &t);
        if (t.symbols && t.strings)
            s->found = takes(&t, s->names);
    }
    return s->found;
}

static int count(struct dl_phdr_info *object, size_t size, void *loaded)
{
    (void)size;
    *(unsigned long long *)loaded = object->dlpi_adds;
    return 1;
}

static int look_again(struct search *last, enum asks what)
{
    unsigned long long loaded = 0;
    if (last->found)
        return 1;
    dl_iterate_phdr(count, &loaded);
    if (loaded == last->loaded)
        return 0;
    last->names = calls[what];
    dl_iterate_phdr(look, last);
    return last->found;
}

int asks_for(enum asks what)
{
    static struct search searches[N_ASKS];
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int found = look_again(&searches[what], what);
    pthread_mutex_unlock(&lock);
    return found;
}
