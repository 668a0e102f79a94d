/* Brigade images: write, read, look up. The format is described in docs/format.md.
 *
 * Calls return 0, or -errno with text in `err` (which may be NULL); outputs are set only on
 * success. Nothing here prints or exits. Strings are copied. A reader may be used by several
 * threads at once except where it says otherwise; a writer by one.
 */
#ifndef BRIGADE_IMAGE_H
#define BRIGADE_IMAGE_H

#include <stddef.h>
#include <stdint.h>

#include "brigade/error.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BRG_IMAGE_NONE UINT32_MAX

/* ---- writing ---- */

struct brg_image_writer;

struct brg_image_options {
    uint32_t block_bytes; /* raw bytes of a block, a multiple of 4096 up to 64 MiB; 0: 1 MiB */
    int32_t level;        /* zstd's; 0 stores the bytes as they are */
    uint32_t threads;     /* that compress; 0: one a processor, at most 8 */
};

/* Everything known about one path. Kinds and flags are those of enum brg_kind and
 * enum brg_entry_flag in docs/format.md; of the flags only BRG_LISTED (2),
 * BRG_SNAPSHOT (8), BRG_MOUNT_DEV (16) and BRG_OWN_RIGHTS (32) are taken. */
struct brg_image_entry {
    const char *path;   /* canonical: absolute, links resolved except the last component */
    const char *target; /* of a symbolic link */
    const char *source; /* where to read the content from; NULL for none */
    const void *data;   /* or: the content itself (copied), data_bytes long */
    uint64_t data_bytes;
    uint32_t kind, flags;
    uint32_t err;   /* of an absence: ENOENT or ENOTDIR */
    uint32_t order; /* rank of first use, or BRG_IMAGE_NONE */
    uint32_t mode, uid, gid, nlink, blksize, reserved;
    uint64_t size, blocks, dev, ino, rdev;
    int64_t atime_ns, mtime_ns, ctime_ns;
};

enum brg_image_section {
    BRG_SECTION_META = 1,   /* JSON */
    BRG_SECTION_PYTHON = 2, /* marshalled import tables */
};

/* Called about once a block; bytes of content read so far and in all. Non-zero: stop, and the
 * call returns -ECANCELED. */
typedef int brg_image_progress(void *user, uint64_t done, uint64_t total);

/* A source that could not be read, or that changed (size or mtime) since its entry was added or
 * while it was read. Return 0 to keep the entry without content, or non-zero to give up. */
typedef int brg_image_lost(void *user, const char *path, const struct brg_error *why);

/* Starts an image. Opens a temporary file beside `path` (mode 0600), so that a folder that cannot
 * be written is found here. `options` may be NULL. */
BRG_API int brg_image_writer_create(const char *path, const struct brg_image_options *options,
                                    struct brg_image_writer **writer, struct brg_error *err);

/* Removes the temporary file of a writer that did not commit, and frees it. NULL is allowed. */
BRG_API void brg_image_writer_destroy(struct brg_image_writer *writer);

BRG_API int brg_image_writer_add_entry(struct brg_image_writer *writer,
                                       const struct brg_image_entry *entry, struct brg_error *err);

/* What ld.so found for `name` asked for by `requester`; path NULL or "" if it found nothing. */
BRG_API int brg_image_writer_add_answer(struct brg_image_writer *writer, uint64_t context,
                                        const char *requester, const char *name, const char *path,
                                        struct brg_error *err);

/* A directory tree that the image answers for; canonical. */
BRG_API int brg_image_writer_add_root(struct brg_image_writer *writer, const char *path,
                                      struct brg_error *err);

BRG_API int brg_image_writer_set_section(struct brg_image_writer *writer,
                                         enum brg_image_section section, const void *bytes,
                                         size_t n, struct brg_error *err);

/* Names an older image. Sources of which it says what is said now (path, size, modification and
 * change time, inode) are not read again: if three quarters of its contents serve, all of them are
 * taken over as they are packed, and what is new comes behind them. A base that turns out to be
 * damaged is done without. Its owner is believed: name no image of somebody else's. */
BRG_API int brg_image_writer_set_base(struct brg_image_writer *writer, const char *path,
                                      struct brg_error *err);

/* Reads the sources, writes everything, syncs, and renames to the final path. The same input (and
 * base) gives the same bytes, whatever the number of threads and the order of the calls. With
 * `lost` NULL a lost source is an error. `id` takes 32 hex digits and a NUL. After this call,
 * whatever its outcome, the writer can only be destroyed. */
BRG_API int brg_image_writer_commit(struct brg_image_writer *writer, brg_image_progress *progress,
                                    brg_image_lost *lost, void *user, char id[33],
                                    struct brg_error *err);

/* ---- reading ---- */

struct brg_image;
struct brg_index; /* src/image/index.h */

struct brg_image_info {
    char id[33];
    uint32_t version;
    uint32_t block_bytes, n_blocks;
    uint64_t total_bytes, index_bytes, raw_bytes, data_off;
    uint32_t n_entries, n_contents, n_answers, n_roots;
};

/* Opens an image from any source, trusted or not: header, index, block table and trailer are
 * checked (checksums and structure), blocks when they are read. The head is read into memory, so
 * that a file that shrinks later gives an error and no signal. */
BRG_API int brg_image_open(const char *path, struct brg_image **image, struct brg_error *err);
BRG_API void brg_image_close(struct brg_image *image);
BRG_API void brg_image_get_info(const struct brg_image *image, struct brg_image_info *info);

/* The index, info.index_bytes long; valid until the image is closed. */
BRG_API const struct brg_index *brg_image_index(const struct brg_image *image);

/* Reads one block, verified and decompressed. `raw` has room for block_bytes. */
BRG_API int brg_image_read_block(const struct brg_image *image, uint32_t block, void *raw,
                                 size_t *raw_bytes, struct brg_error *err);

/* Reads n bytes of a content from `offset`; both must lie inside. */
BRG_API int brg_image_read_content(const struct brg_image *image, uint32_t content, uint64_t offset,
                                   void *buf, size_t n, struct brg_error *err);

/* Reads everything: every block's checksum, every content's hash, and that every entry and every
 * answer is found where a look-up would search it. Raw bytes are counted by `progress` (may be
 * NULL). */
BRG_API int brg_image_verify(const struct brg_image *image, brg_image_progress *progress,
                             void *user, struct brg_error *err);

/* Look-ups for programs that do not know the index: as brg_index_resolve (result 0 unknown,
 * 1 exists, 2 missing, 3 outside) and brg_search_context of src/image/index.h. */
BRG_API int brg_image_resolve(const struct brg_image *image, const char *path, int follow,
                              uint32_t *entry, int *err_no, char *out, size_t out_size);
BRG_API uint64_t brg_image_search_context(const char *exe, const char *ld_library_path);

#ifdef __cplusplus
}
#endif
#endif
