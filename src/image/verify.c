/* Reading a whole image: every block, every content's hash, every look-up. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <xxhash.h>

#include "base/error.h"
#include "image/reader.h"

struct verify {
    const struct brg_image *image;
    XXH3_state_t state; /* of the content that is being read */
    uint32_t content;
    uint64_t left; /* of that content */
    struct brg_error *err;
};

static void start_content(struct verify *v)
{
    XXH3_128bits_reset(&v->state);
    if (v->content < v->image->index->n_contents)
        v->left = brg_contents(v->image->index)[v->content].size;
}

/* Compares each content that is complete, and goes on to the next. */
static int finish_contents(struct verify *v)
{
    while (v->content < v->image->index->n_contents && v->left == 0) {
        const struct brg_content *c = &brg_contents(v->image->index)[v->content];
        XXH128_hash_t hash = XXH3_128bits_digest(&v->state);
        if (hash.low64 != c->hash[0] || hash.high64 != c->hash[1])
            return brg_error_set(v->err, -EBADMSG,
                                 "%s is damaged: content %u does not match its "
                                 "hash; make the image again",
                                 v->image->path, v->content);
        v->content++;
        start_content(v);
    }
    return 0;
}

static int take_raw(struct verify *v, const char *raw, size_t n)
{
    int rc = finish_contents(v);
    while (rc == 0 && n > 0) {
        size_t part = v->left < n ? (size_t)v->left : n;
        XXH3_128bits_update(&v->state, raw, part);
        raw += part;
        n -= part;
        v->left -= part;
        rc = finish_contents(v);
    }
    return rc;
}

static int verify_look_ups(const struct brg_image *i, struct brg_error *err)
{
    const struct brg_index *x = i->index;
    const struct brg_entry *entries = brg_entries(x);
    const struct brg_answer *answers =
        (const struct brg_answer *)((const char *)x + x->answers_off);
    for (uint32_t e = 0; e < x->n_entries; e++)
        if (brg_index_find(x, brg_string(x, entries[e].path), entries[e].path.len) != e)
            return brg_error_set(err, -EBADMSG,
                                 "%s is damaged: a look-up does not find %s; make "
                                 "the image again",
                                 i->path, brg_string(x, entries[e].path));
    for (uint32_t a = 0; a < x->n_answers; a++)
        if (brg_index_answer(x, answers[a].context, brg_string(x, answers[a].requester),
                             brg_string(x, answers[a].name)) != &answers[a])
            return brg_error_set(err, -EBADMSG,
                                 "%s is damaged: a look-up does not find the answer "
                                 "for %s; make the image again",
                                 i->path, brg_string(x, answers[a].name));
    return 0;
}

int brg_image_verify(const struct brg_image *i, brg_image_progress *progress, void *user,
                     struct brg_error *err)
{
    int rc = verify_look_ups(i, err);
    if (rc != 0)
        return rc;
    struct verify v = {.image = i, .err = err};
    char *raw = malloc(i->header->block_bytes);
    if (!raw)
        return brg_error_set(err, -ENOMEM, "no memory to read a block of %s", i->path);
    uint64_t done = 0;
    start_content(&v);
    rc = finish_contents(&v);
    for (uint32_t b = 0; rc == 0 && b < i->header->n_blocks; b++) {
        size_t n = 0;
        rc = brg_image_read_block(i, b, raw, &n, err);
        if (rc == 0)
            rc = take_raw(&v, raw, n);
        done += n;
        if (rc == 0 && progress && progress(user, done, i->header->raw_bytes) != 0)
            rc = brg_error_set(err, -ECANCELED, "stopped while verifying %s", i->path);
    }
    free(raw);
    return rc;
}
