/* Reading the sources of an image.
 *
 * Equal contents are stored once, so a content's hash must be known before it is appended. A
 * small source is read into memory, hashed, and appended if it is new. A large one is never held
 * in memory: if no other source has its size it can only be new, and is hashed while it is
 * appended; otherwise it is read twice.
 *
 * A source must be, before and after it is read, what its entry says (size and mtime): ranks get
 * the entry's answers together with these bytes. A large source that changes while it is appended
 * leaves its bytes behind as a content that no entry names.
 */
#include "image/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/error.h"
#include "base/io.h"

enum {
    SMALL = 4 << 20,
    CHUNK = 1 << 20
};

struct known { /* open addressing, at most half full */
    uint32_t *slots;
    uint32_t mask;
};

struct run {
    struct gather *g;
    struct known known;
    uint64_t *sizes; /* of all that may be equal, sorted */
    size_t n_sizes;
    char *buffer; /* SMALL */
    int stopped;  /* an error that is not about the source at hand */
};

static int is_to_be_read(const struct writer_item *item)
{
    return (item->source || item->data) && item->entry.content == BRG_NONE;
}

void gather_measure(const struct brg_image_writer *w, size_t *n_sources, uint64_t *bytes)
{
    *n_sources = 0;
    *bytes = 0;
    for (size_t i = 0; i < w->n_items; i++) {
        if (!is_to_be_read(&w->items[i]))
            continue;
        ++*n_sources;
        *bytes += w->items[i].entry.size;
    }
}

static uint32_t *known_slot(struct run *r, XXH128_hash_t hash, uint64_t size)
{
    uint32_t at = (uint32_t)hash.low64 & r->known.mask;
    for (;; at = (at + 1) & r->known.mask) {
        uint32_t c = r->known.slots[at];
        if (c == BRG_NONE)
            return &r->known.slots[at];
        const struct brg_content *k = &r->g->contents[c];
        if (k->hash[0] == hash.low64 && k->hash[1] == hash.high64 && k->size == size)
            return &r->known.slots[at];
    }
}

static uint32_t new_content(struct run *r, XXH128_hash_t hash, uint64_t raw_off, uint64_t size)
{
    struct gather *g = r->g;
    g->contents[g->n_contents] =
        (struct brg_content){.hash = {hash.low64, hash.high64}, .raw_off = raw_off, .size = size};
    return g->n_contents++;
}

static int tell(struct run *r, uint64_t more, struct brg_error *err)
{
    struct gather *g = r->g;
    g->done += more;
    if (g->progress && g->progress(g->user, g->done, g->total) != 0) {
        r->stopped = 1;
        return brg_error_set(err, -ECANCELED, "stopped while reading the contents of the image");
    }
    return 0;
}

/* Appends bytes that are in memory; *content is theirs, old or new. */
static int append(struct run *r, const char *bytes, size_t n, uint32_t *content,
                  struct brg_error *err)
{
    struct compressor *out = r->g->out;
    XXH128_hash_t hash = XXH3_128bits(bytes, n);
    uint32_t *slot = known_slot(r, hash, n);
    if (*slot == BRG_NONE) {
        uint64_t raw_off = compressor_raw_bytes(out);
        for (size_t done = 0; done < n;) {
            size_t room;
            void *to = compressor_room(out, &room);
            if (room > n - done)
                room = n - done;
            memcpy(to, bytes + done, room);
            done += room;
            int rc = compressor_advance(out, room, err);
            if (rc != 0) {
                r->stopped = 1;
                return rc;
            }
        }
        *slot = new_content(r, hash, raw_off, n);
    }
    *content = *slot;
    return tell(r, n, err);
}

static int check_unchanged(int fd, const struct writer_item *item, struct brg_error *err)
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        return brg_error_system(err, -errno, "cannot read %s", item->source);
    int64_t mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != item->entry.size ||
        mtime_ns != item->entry.mtime_ns)
        return brg_error_set(err, -ESTALE,
                             "%s changed while the image was made: make it again "
                             "when nothing writes there",
                             item->source);
    return 0;
}

static int read_at(int fd, const struct writer_item *item, void *to, size_t n, uint64_t offset,
                   struct brg_error *err)
{
    ssize_t got = brg_io_pread(fd, to, n, offset);
    if (got < 0)
        return brg_error_system(err, (int)got, "cannot read %s at offset %llu", item->source,
                                (unsigned long long)offset);
    if ((size_t)got < n)
        return brg_error_set(err, -ESTALE, "%s became shorter while the image was made",
                             item->source);
    return 0;
}

static int read_small(struct run *r, int fd, const struct writer_item *item, uint32_t *content,
                      struct brg_error *err)
{
    size_t n = (size_t)item->entry.size;
    int rc = read_at(fd, item, r->buffer, n, 0, err);
    if (rc == 0)
        rc = check_unchanged(fd, item, err);
    return rc == 0 ? append(r, r->buffer, n, content, err) : rc;
}

static int hash_large(struct run *r, int fd, const struct writer_item *item, XXH128_hash_t *hash,
                      struct brg_error *err)
{
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    for (uint64_t at = 0; at < item->entry.size;) {
        size_t n = item->entry.size - at < CHUNK ? (size_t)(item->entry.size - at) : CHUNK;
        int rc = read_at(fd, item, r->buffer, n, at, err);
        if (rc == 0)
            rc = tell(r, 0, err);
        if (rc != 0)
            return rc;
        XXH3_128bits_update(&state, r->buffer, n);
        at += n;
    }
    *hash = XXH3_128bits_digest(&state);
    return 0;
}

static int append_large(struct run *r, int fd, const struct writer_item *item, uint32_t *content,
                        struct brg_error *err)
{
    struct compressor *out = r->g->out;
    uint64_t raw_off = compressor_raw_bytes(out), at = 0;
    XXH3_state_t state;
    XXH3_128bits_reset(&state);
    int rc = 0;
    while (rc == 0 && at < item->entry.size) {
        size_t room;
        void *to = compressor_room(out, &room);
        if (room > item->entry.size - at)
            room = (size_t)(item->entry.size - at);
        rc = read_at(fd, item, to, room, at, err);
        if (rc != 0)
            break;
        XXH3_128bits_update(&state, to, room);
        at += room;
        rc = compressor_advance(out, room, err);
        r->stopped = rc != 0;
        if (rc == 0)
            rc = tell(r, room, err);
    }
    if (at > 0) { /* also when it failed half-way: the bytes are in the stream */
        XXH128_hash_t hash = XXH3_128bits_digest(&state);
        *content = new_content(r, hash, raw_off, at);
        uint32_t *slot = known_slot(r, hash, at);
        if (*slot == BRG_NONE)
            *slot = *content;
    }
    return rc == 0 ? check_unchanged(fd, item, err) : rc;
}

static int size_is_unique(const struct run *r, uint64_t size)
{
    size_t low = 0, high = r->n_sizes;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->sizes[mid] < size)
            low = mid + 1;
        else
            high = mid;
    }
    return low + 1 >= r->n_sizes || r->sizes[low + 1] != size;
}

static int read_large(struct run *r, int fd, const struct writer_item *item, uint32_t *content,
                      struct brg_error *err)
{
    if (!size_is_unique(r, item->entry.size)) {
        XXH128_hash_t hash = {0, 0};
        int rc = hash_large(r, fd, item, &hash, err);
        if (rc == 0)
            rc = check_unchanged(fd, item, err);
        if (rc != 0)
            return rc;
        uint32_t *slot = known_slot(r, hash, item->entry.size);
        if (*slot != BRG_NONE) {
            *content = *slot;
            return tell(r, item->entry.size, err);
        }
    }
    return append_large(r, fd, item, content, err);
}

static int read_source(struct run *r, const struct writer_item *item, uint32_t *content,
                       struct brg_error *err)
{
    /* O_NONBLOCK: should a pipe have taken the file's place, do not wait for its writer */
    int fd = open(item->source, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return brg_error_system(err, -errno, "cannot read %s", item->source);
    int rc = check_unchanged(fd, item, err);
    if (rc == 0)
        rc = item->entry.size <= SMALL ? read_small(r, fd, item, content, err)
                                       : read_large(r, fd, item, content, err);
    close(fd);
    return rc;
}

static int take(struct run *r, struct writer_item *item, struct brg_error *err)
{
    struct gather *g = r->g;
    uint64_t before = g->done;
    uint32_t content = BRG_NONE;
    struct brg_error why;
    int rc = item->data ? append(r, item->data, (size_t)item->entry.size, &content, &why)
                        : read_source(r, item, &content, &why);
    if (rc == 0) {
        item->entry.content = content;
        item->entry.flags |= BRG_HAS_CONTENT;
        return 0;
    }
    if (!r->stopped && g->lost && g->lost(g->user, item->path, &why) == 0) {
        g->done = before;
        return tell(r, item->entry.size, err);
    }
    if (err)
        *err = why;
    return rc;
}

static int compare_sizes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int compare_use(const void *left, const void *right)
{
    const struct writer_item *a = *(struct writer_item *const *)left;
    const struct writer_item *b = *(struct writer_item *const *)right;
    int c = (a->entry.order > b->entry.order) - (a->entry.order < b->entry.order);
    return c ? c : (a > b) - (a < b); /* the items are sorted: their place breaks a tie */
}

/* What the base holds is known from the start, wherever else it may turn up. */
static int take_base(struct run *r, struct brg_error *err)
{
    struct gather *g = r->g;
    const struct brg_content *contents = brg_contents(g->base->index);
    for (uint32_t i = 0; i < g->base->index->n_contents; i++) {
        const struct brg_content *c = &contents[i];
        XXH128_hash_t hash = {c->hash[0], c->hash[1]};
        *known_slot(r, hash, c->size) = new_content(r, hash, c->raw_off, c->size);
        r->sizes[r->n_sizes++] = c->size;
    }
    int rc = 0;
    for (uint32_t i = 0; rc == 0 && i < g->base->header->n_blocks; i++) {
        rc = base_copy(g->base, i, g->out, &g->base_failed, err);
        if (rc == 0)
            rc = tell(r, g->base->blocks[i].raw_bytes, err);
    }
    return rc;
}

static int take_all(struct run *r, struct writer_item **sources, size_t n, struct brg_error *err)
{
    size_t n_base = r->g->base ? r->g->base->index->n_contents : 0, room = n + n_base + 1;
    size_t slots = 8;
    while (slots < 2 * room)
        slots *= 2;
    r->known.slots = malloc(slots * sizeof *r->known.slots);
    r->known.mask = (uint32_t)slots - 1;
    r->buffer = malloc(SMALL);
    r->sizes = malloc(room * sizeof *r->sizes);
    r->g->contents = malloc(room * sizeof *r->g->contents);
    if (!r->known.slots || !r->buffer || !r->sizes || !r->g->contents)
        return brg_error_set(err, -ENOMEM, "no memory to read the contents of an image");
    memset(r->known.slots, 0xff, slots * sizeof *r->known.slots);
    for (size_t i = 0; i < n; i++)
        r->sizes[i] = sources[i]->entry.size;
    r->n_sizes = n;
    int rc = r->g->base ? take_base(r, err) : 0;
    qsort(r->sizes, r->n_sizes, sizeof *r->sizes, compare_sizes);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = take(r, sources[i], err);
    return rc;
}

int gather_run(struct gather *g, size_t n_sources, struct brg_error *err)
{
    struct run r = {.g = g};
    struct writer_item **sources = malloc((n_sources + 1) * sizeof *sources);
    if (!sources)
        return brg_error_set(err, -ENOMEM, "no memory to read the contents of an image");
    size_t n = 0;
    for (size_t i = 0; i < g->w->n_items; i++)
        if (is_to_be_read(&g->w->items[i]))
            sources[n++] = &g->w->items[i];
    qsort(sources, n, sizeof *sources, compare_use);
    int rc = take_all(&r, sources, n, err);
    free(r.known.slots);
    free(r.buffer);
    free(r.sizes);
    free(sources);
    return rc;
}
