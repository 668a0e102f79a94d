/* See fit.h. */
#include "stage/fit.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "stage/space.h"

static const char own_parts[] = "/.brigade/";

enum usefulness {
    OWN_PART,
    USED,
    SOURCE_OF_BYTE_CODE,
    UNUSED
};

struct candidate {
    enum usefulness class;
    uint32_t entry, order;
    uint64_t bytes; /* in whole pages */
};

static int has_content(const struct brg_entry *e)
{
    return e->kind == BRG_FILE && e->content != BRG_NONE;
}

/* Whether the image holds `__pycache__/<stem>.*.pyc` beside this `.py`. */
static int has_byte_code(const struct brg_index *x, const struct brg_entry *e)
{
    static const char cache[] = "__pycache__";
    const char *path = brg_string(x, e->path), *name = path + e->name_off;
    size_t stem = e->path.len - e->name_off;
    char folder[4096];
    if (stem < 3 || strcmp(name + stem - 3, ".py") != 0 || e->name_off + sizeof cache > 4096)
        return 0;
    stem -= 2; /* with the dot */
    memcpy(folder, path, e->name_off);
    memcpy(folder + e->name_off, cache, sizeof cache);
    uint32_t found = brg_index_find(x, folder, e->name_off + sizeof cache - 1);
    if (found == BRG_NONE)
        return 0;
    const struct brg_entry *dir = &brg_entries(x)[found];
    for (uint32_t i = 0; i < dir->n_children; i++) {
        const struct brg_entry *code = &brg_entries(x)[dir->first_child + i];
        if (has_content(code) &&
            strncmp(brg_string(x, code->path) + code->name_off, name, stem) == 0)
            return 1;
    }
    return 0;
}

static enum usefulness class_of(const struct brg_index *x, const struct brg_entry *e)
{
    if (strncmp(brg_string(x, e->path), own_parts, sizeof own_parts - 1) == 0)
        return OWN_PART;
    if (has_byte_code(x, e))
        return SOURCE_OF_BYTE_CODE;
    return e->order == BRG_NONE ? UNUSED : USED;
}

static int candidate_compare(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->order != y->order)
        return x->order < y->order ? -1 : 1;
    return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static uint32_t list_candidates(const struct brg_index *x, uint64_t page, struct candidate *list)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < x->n_entries; i++) {
        const struct brg_entry *e = &brg_entries(x)[i];
        if (has_content(e))
            list[n++] = (struct candidate){.class = class_of(x, e),
                                           .entry = i,
                                           .order = e->order,
                                           .bytes = (e->size + page - 1) / page * page};
    }
    qsort(list, n, sizeof *list, candidate_compare);
    return n;
}

static void note_largest(const struct brg_index *x, uint32_t entry, struct fit *fit)
{
    const struct brg_entry *entries = brg_entries(x);
    for (uint32_t i = 0; i < FIT_NAMES; i++) {
        uint32_t there = fit->largest[i];
        if (there != BRG_NONE && entries[there].size >= entries[entry].size)
            continue;
        fit->largest[i] = entry;
        if (there == BRG_NONE)
            return;
        entry = there;
    }
}

/* Goes on after the first file that does not fit: a class may end with a large one. */
static void choose(struct brg_index *x, const struct candidate *list, uint32_t n, uint64_t room,
                   struct fit *fit)
{
    struct brg_entry *entries = (struct brg_entry *)((char *)x + x->entries_off);
    for (uint32_t i = 0; i < n; i++) {
        if (list[i].bytes <= room) {
            room -= list[i].bytes;
            continue;
        }
        struct brg_entry *e = &entries[list[i].entry];
        e->content = BRG_NONE;
        e->flags &= (uint8_t)~BRG_HAS_CONTENT;
        fit->left_out_bytes += e->size;
        fit->left_out_files++;
        note_largest(x, list[i].entry, fit);
    }
}

int fit_memory(void *head, uint32_t page_bytes, uint64_t memory_bytes, struct fit *fit,
               struct brg_error *err)
{
    struct brg_image_header *h = head;
    struct brg_index *x = (struct brg_index *)((char *)head + h->index_off);
    struct fit out = {.whole_bytes = space_needed(head, page_bytes).bytes};
    uint64_t fixed = out.whole_bytes;
    for (uint32_t i = 0; i < FIT_NAMES; i++)
        out.largest[i] = BRG_NONE;
    if (out.whole_bytes <= memory_bytes) {
        *fit = out;
        return 0;
    }
    struct candidate *list = malloc(((size_t)x->n_entries + 1) * sizeof *list);
    if (!list)
        return brg_error_set(err, -ENOMEM, "no memory for the list of %u files", x->n_entries);
    uint32_t n = list_candidates(x, page_bytes, list), own = 0;
    for (uint32_t i = 0; i < n; i++)
        fixed -= list[i].bytes;
    for (; own < n && list[own].class == OWN_PART; own++)
        fixed += list[own].bytes;
    if (memory_bytes == FIT_LEAST)
        memory_bytes = fixed;
    if (fixed > memory_bytes) {
        free(list);
        return brg_error_set(err, -E2BIG,
                             "the image's index alone takes %" PRIu64 " KiB of a node's memory, "
                             "and --memory allows %" PRIu64 " KiB: allow more",
                             (fixed + 1023) >> 10, memory_bytes >> 10);
    }
    choose(x, list + own, n - own, memory_bytes - fixed, &out);
    brg_head_seal(head);
    free(list);
    *fit = out;
    return 0;
}
