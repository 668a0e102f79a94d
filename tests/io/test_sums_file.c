/* Files of checksums read back as they were written, whatever their size; small ones take a single
 * write. */
#include "claim.h"
#include "store/sums_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int writes;

/* Instead of the C library's. */
ssize_t pwrite(int fd, const void *buf, size_t n, off_t offset)
{
    writes++;
    return syscall(SYS_pwrite64, fd, buf, n, offset);
}

static uint64_t sum_of(uint64_t salt, uint64_t block)
{
    return (block + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ salt;
}

static int give(void *context, uint64_t first, size_t n, uint64_t *sums)
{
    for (size_t i = 0; i < n; i++)
        sums[i] = sum_of(*(uint64_t *)context, first + i);
    return 0;
}

static int refuse(void *context, uint64_t first, size_t n, uint64_t *sums)
{
    (void)context, (void)n, (void)sums;
    return first ? -EIO : 0;
}

/* The first block that has another sum, or -1. */
static int64_t wrong_block(const struct sums_file *file, uint32_t i, uint64_t n, uint64_t salt)
{
    for (uint64_t block = 0; block < n; block++) {
        uint64_t sum = 0;
        if (sums_file_get(file, i, block, 1, &sum) || sum != sum_of(salt, block))
            return (int64_t)block;
    }
    return -1;
}

/* Writes `n` sections of so many blocks, reads them back; returns how many writes it took. */
static int there_and_back(uint32_t n, const uint64_t *blocks)
{
    char path[] = "/tmp/brigade-sums-XXXXXX";
    int fd = mkstemp(path);
    struct sums_section sections[SUMS_SECTIONS] = {0};
    sums_source *sources[SUMS_SECTIONS];
    void *contexts[SUMS_SECTIONS];
    uint64_t salt[SUMS_SECTIONS];
    struct sums_file file;
    struct brg_error err;
    CHECK(fd >= 0, "no file to write");
    for (uint32_t i = 0; i < n; i++) {
        salt[i] = i * 1000 + 7;
        sources[i] = give;
        contexts[i] = &salt[i];
        sections[i] = (struct sums_section){
            .id = i, .size = blocks[i] * 65536, .block_bytes = 65536, .n_blocks = blocks[i]};
    }
    writes = 0;
    CHECK(sums_file_write(fd, sections, n, sources, contexts) == 0, "cannot write");
    int took = writes;
    CHECK(sums_file_open(&file, path, &err) == 0, "cannot read it back: %s", err.text);
    CHECK(file.n == n, "%u sections", file.n);
    for (uint32_t i = 0; i < file.n; i++)
        CHECK(wrong_block(&file, i, blocks[i], salt[i]) == -1, "section %u of %u, block %d", i, n,
              (int)wrong_block(&file, i, blocks[i], salt[i]));
    sums_file_close(&file);
    close(fd);
    unlink(path);
    return took;
}

int main(void)
{
    uint64_t none = 0, salt = 1;
    CHECK(there_and_back(1, &none) == 1, "an empty file's");
    CHECK(there_and_back(1, (uint64_t[]){5}) == 1, "a small file's");
    CHECK(there_and_back(3, (uint64_t[]){900, 0, 900}) == 1, "those of three writings");
    /* 16 KiB: a head of 32 bytes, a section's of 64 */
    uint64_t edge = (16384 - 32 - 64) / 8;
    CHECK(there_and_back(1, (uint64_t[]){edge}) == 1, "as much as waits");
    CHECK(there_and_back(1, (uint64_t[]){edge + 1}) == 2, "a block more");
    CHECK(there_and_back(2, (uint64_t[]){edge - 4, 3}) == 3, "a section's head across the edge");
    CHECK(there_and_back(4, (uint64_t[]){1025, 4000, 0, 9000}) > 4, "long ones");

    sums_source *source = refuse;
    void *context = &salt;
    struct sums_section one = {.size = 2048 * 4096, .block_bytes = 4096, .n_blocks = 2048};
    writes = 0;
    CHECK(sums_file_write(-1, &one, 1, &source, &context) == -EIO, "what a source says");
    CHECK(writes == 0, "nothing is written then");
    return failures != 0;
}
