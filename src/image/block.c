/* One block: verify and decompress. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <xxhash.h>
#include <zstd.h>

#include "base/error.h"
#include "image/format.h"

int brg_block_check(const struct brg_block *b, uint32_t number, const void *bytes,
                    const char *where, struct brg_error *err)
{
    if (XXH3_64bits(bytes, b->bytes) == b->checksum)
        return 0;
    return brg_error_set(err, -EBADMSG,
                         "%s is damaged: block %u at offset %" PRIu64
                         " does not match its checksum; copy the image again, or make it again",
                         where, number, b->off);
}

int brg_block_decode(const struct brg_block *b, uint32_t number, const void *bytes, void *raw,
                     void *zstd, const char *where, struct brg_error *err)
{
    int rc = brg_block_check(b, number, bytes, where, err);
    if (rc != 0)
        return rc;
    if (b->bytes == b->raw_bytes) {
        memcpy(raw, bytes, b->bytes);
        return 0;
    }
    ZSTD_DCtx *context = zstd ? zstd : ZSTD_createDCtx();
    if (!context)
        return brg_error_set(err, -ENOMEM, "no memory to decompress block %u of %s", number, where);
    size_t n = ZSTD_decompressDCtx(context, raw, b->raw_bytes, bytes, b->bytes);
    if (!zstd)
        ZSTD_freeDCtx(context);
    if (ZSTD_isError(n) || n != b->raw_bytes)
        return brg_error_set(err, -EBADMSG,
                             "%s is damaged: block %u at offset %" PRIu64
                             " cannot be decompressed (%s); make the image again",
                             where, number, b->off,
                             ZSTD_isError(n) ? ZSTD_getErrorName(n) : "it is too short");
    return 0;
}
