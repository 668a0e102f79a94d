/* The seed corpus: small images with all checksums as they are (last byte 0) and repaired (31). */
#include "seeds.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/io.h"
#include "small_image.h"

static void load(const char *file, struct seed *s)
{
    struct stat st;
    int fd = open(file, O_RDONLY);
    NEED(fd >= 0 && fstat(fd, &st) == 0);
    s->n = (size_t)st.st_size + 1;
    s->bytes = malloc(s->n);
    NEED(s->bytes && brg_io_pread(fd, s->bytes, s->n - 1, 0) == st.st_size);
    s->bytes[s->n - 1] = 0;
    close(fd);
    unlink(file);
}

size_t seeds_make(struct seed seeds[SEEDS])
{
    static const struct spec one[] = {{"/sw", BRG_DIR, NULL, BRG_LISTED, 0},
                                      {"/sw/a", BRG_FILE, "aaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0, 0}};
    small_image("seed.img", "/sw", everything, N_EVERYTHING);
    load("seed.img", &seeds[0]);
    small_image("seed.img", "/sw", one, 2);
    load("seed.img", &seeds[1]);
    small_image("seed.img", "/", NULL, 0);
    load("seed.img", &seeds[2]);
    for (size_t i = 0; i < 3; i++) {
        seeds[i + 3].n = seeds[i].n;
        seeds[i + 3].bytes = malloc(seeds[i].n);
        NEED(seeds[i + 3].bytes);
        memcpy(seeds[i + 3].bytes, seeds[i].bytes, seeds[i].n);
        seeds[i + 3].bytes[seeds[i].n - 1] = 31;
    }
    return SEEDS;
}
