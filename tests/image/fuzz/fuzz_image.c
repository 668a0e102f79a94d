/* Any bytes as an image: opening, every look-up and every read must end in an answer or in words.
 *
 * Checksums would stop nearly every input at the door, so the last byte of an input says which of
 * them are made good first: what is behind the door gets its share.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xxhash.h>

#include "base/io.h"
#include "brigade/image.h"
#include "fuzz_image.h"
#include "image/format.h"

enum {
    FIX_BLOCKS = 1,
    FIX_TABLE = 2,
    FIX_INDEX = 4,
    FIX_HEADER = 8,
    FIX_TRAILER = 16
};

static int inside(uint64_t off, uint64_t n, size_t size)
{
    return off % 8 == 0 && off <= size && n <= size - off;
}

static void fix_checksums(char *bytes, size_t n, unsigned which)
{
    struct brg_image_header *h = (struct brg_image_header *)bytes;
    if (n < BRG_PAGE)
        return;
    uint32_t n_blocks = h->n_blocks; /* the table may lie over anything but the header */
    uint64_t table_bytes = n_blocks * sizeof(struct brg_block);
    if (h->table_off >= BRG_PAGE && inside(h->table_off, table_bytes, n)) {
        struct brg_block *blocks = (struct brg_block *)(bytes + h->table_off);
        for (uint32_t i = 0; (which & FIX_BLOCKS) && i < n_blocks; i++)
            if (blocks[i].off <= n && blocks[i].bytes <= n - blocks[i].off)
                blocks[i].checksum = XXH3_64bits(bytes + blocks[i].off, blocks[i].bytes);
        if (which & FIX_TABLE)
            h->table_checksum = XXH3_64bits(blocks, table_bytes);
    }
    struct brg_index *x = (struct brg_index *)(bytes + BRG_PAGE);
    if ((which & FIX_INDEX) && inside(BRG_PAGE, h->index_bytes, n) && h->index_bytes >= sizeof *x &&
        x->bytes == h->index_bytes) {
        x->checksum = brg_index_checksum(x);
        XXH128_hash_t id = XXH3_128bits(x, h->index_bytes);
        h->id[0] = id.low64;
        h->id[1] = id.high64;
    }
    if (which & FIX_HEADER)
        h->checksum = brg_header_checksum(bytes);
    if ((which & FIX_TRAILER) &&
        inside(n - sizeof(struct brg_image_trailer), sizeof(struct brg_image_trailer), n)) {
        struct brg_image_trailer t = {BRG_TRAILER_MAGIC, {h->id[0], h->id[1]}, h->total_bytes};
        memcpy(bytes + n - sizeof t, &t, sizeof t);
    }
}

static void look_up(const struct brg_index *x, const char *path)
{
    char out[2048];
    uint32_t entry = 0;
    int err = 0;
    for (int follow = 0; follow < 2; follow++) {
        enum brg_found found =
            brg_index_resolve(x, path, follow, &entry, &err, out, sizeof out >> follow * 3);
        if ((found == BRG_EXISTS || found == BRG_MISSING) && entry >= x->n_entries)
            abort();
    }
}

static void use(const struct brg_image *image)
{
    const struct brg_index *x = brg_image_index(image);
    const struct brg_entry *entries = brg_entries(x);
    const struct brg_answer *answers =
        (const struct brg_answer *)((const char *)x + x->answers_off);
    char buf[512], longer[BRG_PAGE + 64];
    uint32_t first, end;
    for (uint32_t i = 0; i < x->n_entries && i < 512; i++) {
        const char *path = brg_string(x, entries[i].path);
        look_up(x, path);
        snprintf(longer, sizeof longer, "%s/../.%s/x", path, path);
        look_up(x, longer);
        if (entries[i].content != BRG_NONE) {
            uint64_t size = brg_contents(x)[entries[i].content].size;
            brg_image_read_content(image, entries[i].content, size / 2, buf,
                                   size - size / 2 < sizeof buf ? size - size / 2 : sizeof buf,
                                   NULL);
        }
    }
    for (uint32_t i = 0; i < x->n_answers && i < 512; i++)
        brg_index_answer(x, answers[i].context, brg_string(x, answers[i].requester),
                         brg_string(x, answers[i].name));
    brg_contents_in(x, 1, UINT64_MAX / 2, &first, &end);
    uint32_t *starts = malloc(((size_t)x->n_contents + 1) * sizeof *starts);
    uint32_t *sharing = malloc(((size_t)x->n_entries + 1) * sizeof *sharing);
    if (starts && sharing)
        brg_content_entries(x, starts, sharing);
    free(starts);
    free(sharing);
    brg_image_verify(image, NULL, NULL, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int fd = -1;
    static char name[64];
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        if (fd < 0)
            abort();
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    }
    if (size == 0)
        return 0;
    size_t n = size - 1;
    char *bytes = malloc(n + 1);
    if (!bytes)
        return 0;
    memcpy(bytes, data, n);
    fix_checksums(bytes, n, data[n]);
    if (ftruncate(fd, 0) != 0 || brg_io_pwrite(fd, bytes, n, 0, NULL) != 0)
        abort();
    free(bytes);
    struct brg_image *image = NULL;
    struct brg_error err;
    if (brg_image_open(name, &image, &err) == 0) {
        use(image);
        brg_image_close(image);
    }
    return 0;
}
