/* Images for tests, made by the writer: a few lines describe a tree. */
#ifndef BRG_TESTS_SMALL_IMAGE_H
#define BRG_TESTS_SMALL_IMAGE_H

#include <errno.h>
#include <unistd.h>

#include "brigade/image.h"
#include "check.h"
#include "image/format.h"

struct spec {
    const char *path;
    uint32_t kind;
    const char *text; /* FILE: its bytes (NULL: no content); SYMLINK: its target */
    uint32_t flags;
    uint32_t err;
};

static inline struct brg_image_writer *small_writer(const char *file, uint32_t block_bytes)
{
    struct brg_image_options o = {block_bytes, 3, 1};
    struct brg_image_writer *w = NULL;
    struct brg_error err = {0};
    if (brg_image_writer_create(file, &o, &w, &err) != 0)
        fprintf(stderr, "%s\n", err.text);
    NEED(w);
    return w;
}

static inline int small_add(struct brg_image_writer *w, const struct spec *s, struct brg_error *err)
{
    struct brg_image_entry e = {.path = s->path,
                                .kind = s->kind,
                                .flags = s->flags,
                                .err = s->err,
                                .order = BRG_IMAGE_NONE,
                                .mode = 0755};
    if (s->kind == BRG_SYMLINK)
        e.target = s->text;
    if (s->kind == BRG_FILE && s->text) {
        e.data = s->text;
        e.data_bytes = strlen(s->text);
    }
    return brg_image_writer_add_entry(w, &e, err);
}

/* Writes the tree into `file`. */
static inline void small_image(const char *file, const char *root, const struct spec *specs,
                               size_t n)
{
    struct brg_error err = {0};
    char id[33];
    struct brg_image_writer *w = small_writer(file, 4096);
    NEED(brg_image_writer_add_root(w, root, &err) == 0);
    for (size_t i = 0; i < n; i++)
        NEED(small_add(w, &specs[i], &err) == 0);
    NEED(brg_image_writer_set_section(w, BRG_SECTION_META, "{}", 2, &err) == 0);
    NEED(brg_image_writer_add_answer(w, 7, "/sw/bin/app", "libm.so", "/sw/lib64/libm.so", &err) ==
         0);
    NEED(brg_image_writer_add_answer(w, 7, "/sw/bin/app", "libgone.so", NULL, &err) == 0);
    if (brg_image_writer_commit(w, NULL, NULL, NULL, id, &err) != 0) {
        fprintf(stderr, "%s\n", err.text);
        exit(1);
    }
    brg_image_writer_destroy(w);
}

/* A tree with something of everything. */
static const struct spec everything[] = {
    {"/", BRG_DIR, NULL, BRG_LISTED, 0},
    {"/home", BRG_SYMLINK, "/sw/home", 0, 0},
    {"/sw", BRG_DIR, NULL, BRG_LISTED, 0},
    {"/sw/home", BRG_DIR, NULL, 0, 0},
    {"/sw/home/seen", BRG_FILE, "seen", 0, 0},
    {"/sw/home/gone", BRG_ABSENT, NULL, 0, ENOENT},
    {"/sw/home/pipe", BRG_OTHER, NULL, 0, 0},
    {"/sw/bin", BRG_DIR, NULL, BRG_LISTED, 0},
    {"/sw/bin/app", BRG_FILE, "app", 0, 0},
    {"/sw/bin/app/x", BRG_ABSENT, NULL, 0, ENOTDIR},
    {"/sw/bin/python", BRG_SYMLINK, "python3", 0, 0},
    {"/sw/bin/python3", BRG_SYMLINK, "/usr/bin/python3", 0, 0},
    {"/sw/lib", BRG_DIR, NULL, BRG_LISTED, 0},
    {"/sw/lib/libm.so", BRG_FILE, "the same bytes", 0, 0},
    {"/sw/lib/libm.so.6", BRG_FILE, "the same bytes", 0, 0},
    {"/sw/lib/empty", BRG_FILE, "", 0, 0},
    {"/sw/lib/known", BRG_FILE, NULL, 0, 0},
    {"/sw/lib64", BRG_SYMLINK, "lib", 0, 0},
    {"/sw/up", BRG_SYMLINK, "../sw/bin/", 0, 0},
    {"/sw/loop", BRG_SYMLINK, "loop", 0, 0},
    {"/sw/nowhere", BRG_SYMLINK, "lib/none", 0, 0},
    {"/sw/out", BRG_SYMLINK, "/etc/ssl", 0, 0},
    {"/sw/part", BRG_SYMLINK, "home/else", 0, 0},
};
#define N_EVERYTHING (sizeof everything / sizeof *everything)

#endif
