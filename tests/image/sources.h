/* Files to make images of, for tests of the writer. */
#ifndef BRG_TESTS_SOURCES_H
#define BRG_TESTS_SOURCES_H

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "brigade/image.h"
#include "check.h"
#include "image/format.h"

static inline struct brg_image_entry file_entry(const char *path, const char *source)
{
    struct stat st;
    NEED(stat(source, &st) == 0);
    return (struct brg_image_entry){
        .path = path,
        .source = source,
        .kind = BRG_FILE,
        .order = BRG_IMAGE_NONE,
        .mode = st.st_mode,
        .size = (uint64_t)st.st_size,
        .ino = st.st_ino,
        .mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec,
        .ctime_ns = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
}

static inline void make_file(const char *name, size_t n, unsigned seed)
{
    char *text = malloc(n + 1);
    NEED(text);
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        text[i] = (char)(i % 3 ? seed >> 24 : 'a');
    }
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    NEED(fd >= 0 && brg_io_pwrite(fd, text, n, 0, NULL) == 0);
    close(fd);
    free(text);
}

static inline int same_bytes(const char *a, const char *b)
{
    char command[256];
    snprintf(command, sizeof command, "cmp -s %s %s", a, b);
    return system(command) == 0;
}

#endif
