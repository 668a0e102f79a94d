/* See handoff_message.h. */
#include "move/handoff_message.h"

#include <errno.h>
#include <string.h>

struct run {
    uint32_t at, bytes;
};

/* What a bucket holds, seen before anything is moved. */
struct survey {
    uint32_t runs, covered, first, end;
    int listable; /* a list written over the bitmap never hits bits still to be read */
};

/* Image bytes that a word of the bitmap stands for; the byte of the bitmap for image byte `at`. */
static uint32_t word_bytes(const struct bucket *bucket)
{
    return 64u << bucket->grain;
}

static uint32_t bits_at(const struct bucket *bucket, uint32_t at)
{
    return (at >> bucket->grain) / 8;
}

static int is_of_grains(const struct bucket *bucket, uint32_t value)
{
    return (value & ((1u << bucket->grain) - 1)) == 0;
}

static struct survey survey_of(const struct bucket *bucket)
{
    struct survey s = {.listable = 1};
    uint32_t from = 0, at, bytes;
    for (; bucket_run(bucket, from, &at, &bytes); from = s.end) {
        if (s.runs == 0)
            s.first = at;
        else if (bits_at(bucket, at) / 8 < s.runs)
            s.listable = 0;
        s.runs++;
        s.covered += bytes;
        s.end = at + bytes;
    }
    return s;
}

static uint32_t owners_of(const struct bucket *bucket, uint32_t bytes)
{
    return bucket->owner ? (uint32_t)bucket_owner_bytes(bucket, bytes) : 0;
}

static struct message_header header_of(const struct bucket *bucket, uint64_t window,
                                       const struct survey *s)
{
    return (struct message_header){.window = window,
                                   .puts = *bucket->all_puts,
                                   .form = s->runs ? MESSAGE_RUN : MESSAGE_EMPTY,
                                   .at = s->first,
                                   .covered = s->covered,
                                   .body = s->covered + owners_of(bucket, s->covered),
                                   .owned = bucket->owner != NULL};
}

/* Words of the bitmap that have all bits of a survey. */
static uint32_t words_of(const struct bucket *bucket, const struct survey *s)
{
    uint32_t bytes = word_bytes(bucket);
    return (s->end + bytes - 1) / bytes - s->first / bytes;
}

static void index_by_bitmap(const struct bucket *bucket, struct message_header *header,
                            const struct survey *s)
{
    header->form = MESSAGE_BITMAP;
    header->at = s->first / word_bytes(bucket) * word_bytes(bucket);
    header->index = words_of(bucket, s);
    header->body += header->index * 8;
}

static void index_by_list(struct message_header *header, const struct survey *s)
{
    header->form = MESSAGE_LIST;
    header->at = 0;
    header->index = s->runs;
    header->body += s->runs * (uint32_t)sizeof(struct run);
}

/* Moves the runs together, to `to`: their bytes, or their words of the owner map. With a list it
 * takes the place of the bitmap, which is read one run ahead of it. */
static void gather(const struct bucket *bucket, int owners, char *to, struct run *list)
{
    const char *base = owners ? (const char *)bucket->owner : bucket->image;
    struct run run, next;
    int more = bucket_run(bucket, 0, &run.at, &run.bytes);
    while (more) {
        size_t at = owners ? owners_of(bucket, run.at) : run.at;
        size_t bytes = owners ? owners_of(bucket, run.bytes) : run.bytes;
        memmove(to, base + at, bytes);
        to += bytes;
        more = bucket_run(bucket, run.at + run.bytes, &next.at, &next.bytes);
        if (list)
            *list++ = run;
        run = next;
    }
}

/* Owners go to the front of the map first: from there they are moved to behind the bytes. */
static void gather_in_place(struct bucket *bucket, uint32_t covered, struct run *list)
{
    gather(bucket, 0, bucket->image, bucket->owner ? NULL : list);
    if (!bucket->owner)
        return;
    gather(bucket, 1, (char *)bucket->owner, list);
    memmove(bucket->image + covered, bucket->owner, owners_of(bucket, covered));
}

void message_pack(struct bucket *bucket, uint64_t window, struct message_header *header,
                  const void **body)
{
    struct survey s = survey_of(bucket);
    char *bits = (char *)(void *)bucket->covered;
    *header = header_of(bucket, window, &s);
    *body = bucket->image + s.first;
    if (s.runs == 0 || (s.runs == 1 && !bucket->owner))
        return;
    uint32_t packed = header->body;
    int list = s.listable && s.runs < words_of(bucket, &s);
    *body = bucket->image;
    if (s.runs > 1 && list)
        index_by_list(header, &s);
    else if (s.runs > 1)
        index_by_bitmap(bucket, header, &s);
    gather_in_place(bucket, s.covered,
                    header->form == MESSAGE_LIST ? (struct run *)(void *)bits : NULL);
    const char *index = header->form == MESSAGE_BITMAP ? bits + bits_at(bucket, header->at) : bits;
    memmove(bucket->image + packed, index, header->body - packed);
}

int message_needs_room(const struct bucket *bucket)
{
    uint32_t at, bytes;
    return bucket_run(bucket, 0, &at, &bytes) && bucket_run(bucket, at + bytes, &at, &bytes);
}

/* The bitmap may be that of `room`, behind the image. */
static void pack_into(const struct bucket *bucket, uint64_t window, const struct survey *s,
                      struct bucket *room, struct message_header *header, const void **body)
{
    *header = header_of(bucket, window, s);
    header->puts = s->covered;
    *body = bucket->image + s->first;
    if (s->runs <= 1)
        return;
    uint32_t packed = header->body;
    char *to = room->image;
    index_by_bitmap(bucket, header, s);
    gather(bucket, 0, to, NULL);
    memmove(to + packed, (char *)(void *)bucket->covered + bits_at(bucket, header->at),
            header->body - packed);
    *body = to;
}

void message_pack_into(struct bucket *bucket, uint64_t window, struct bucket *room,
                       struct message_header *header, const void **body)
{
    struct survey s = survey_of(bucket);
    pack_into(bucket, window, &s, room, header, body);
}

size_t message_asks_bytes(const struct bucket *bucket)
{
    return (bucket->bytes >> bucket->grain) / 8;
}

/* What is asked for, of which the bucket holds all. */
static struct bucket asked_of(const struct bucket *bucket, const struct bucket *room)
{
    struct bucket asked = *bucket;
    asked.covered = room->covered;
    for (size_t word = 0; word < message_asks_bytes(bucket) / 8; word++)
        atomic_fetch_and_explicit(
            &asked.covered[word],
            atomic_load_explicit(&bucket->covered[word], memory_order_relaxed),
            memory_order_relaxed);
    return asked;
}

/* As one run, with what lies between, where `bucket` has that and it is not much. */
static struct survey survey_asked(const struct bucket *bucket, const struct bucket *asked)
{
    struct survey s = survey_of(asked);
    uint32_t at, bytes, between = s.end - s.first - s.covered;
    if (s.runs > 1 && between < s.covered && bucket_run(bucket, s.first, &at, &bytes) &&
        at == s.first && bytes >= s.end - s.first) {
        s.runs = 1;
        s.covered += between;
    }
    return s;
}

void message_pack_asked(const struct bucket *bucket, uint64_t window, struct bucket *room,
                        struct message_header *header, const void **body)
{
    struct bucket asked = asked_of(bucket, room);
    struct survey s = survey_asked(bucket, &asked);
    pack_into(&asked, window, &s, room, header, body);
}

int message_asked_needs_room(const struct bucket *bucket, const struct bucket *room)
{
    struct bucket asked = asked_of(bucket, room);
    return survey_asked(bucket, &asked).runs > 1;
}

/* 64-bit sums: no field can make them wrap. */
int message_check(const struct message_header *header, uint64_t window, const struct bucket *bucket)
{
    uint64_t bytes = (uint64_t)header->covered, room = bucket->bytes;
    if (bucket->owner)
        bytes += bucket_owner_bytes(bucket, header->covered);
    uint64_t indexed = bytes + (uint64_t)header->index * 8;
    if (header->window != window)
        return -EPROTO;
    if (header->form == MESSAGE_FAILED)
        return 0;
    if (header->owned != (bucket->owner != NULL) || header->covered > room ||
        header->puts < header->covered || !is_of_grains(bucket, header->covered))
        return -EPROTO;
    switch (header->form) {
    case MESSAGE_EMPTY: return header->covered || header->body ? -EPROTO : 0;
    case MESSAGE_RUN:
        return header->body != bytes || !is_of_grains(bucket, header->at) ||
                       header->at + (uint64_t)header->covered > room
                   ? -EPROTO
                   : 0;
    case MESSAGE_BITMAP:
        return header->body != indexed || header->at % word_bytes(bucket) ||
                       header->at + (uint64_t)header->index * word_bytes(bucket) > room
                   ? -EPROTO
                   : 0;
    case MESSAGE_LIST:
        return header->body != indexed || header->index > room / word_bytes(bucket) ? -EPROTO : 0;
    }
    return -EPROTO;
}

int message_goes_into_place(const struct message_header *header, const struct bucket *bucket)
{
    return header->form == MESSAGE_RUN && !bucket->owner;
}

void *message_place_of(const struct message_header *header, struct bucket *bucket)
{
    return bucket->image + header->at;
}

/* What is left of a body: bytes, and owners where there are any. */
struct packed {
    const char *bytes, *owners;
};

static struct packed packed_of(const struct message_header *header, const void *body)
{
    return (struct packed){body, (const char *)body + header->covered};
}

static void put(struct bucket *bucket, uint32_t at, struct packed *from, uint32_t bytes)
{
    if (bucket->owner)
        bucket_put_owned(bucket, bucket->start + at, from->bytes, bytes, from->owners);
    else
        bucket_put(bucket, bucket->start + at, from->bytes, bytes, 0);
    from->bytes += bytes;
    from->owners += owners_of(bucket, bytes);
}

static const char *index_of(const struct message_header *header, const struct bucket *bucket,
                            const void *body)
{
    return (const char *)body + header->covered + owners_of(bucket, header->covered);
}

static int unpack_list(const struct message_header *header, struct bucket *bucket, const void *body)
{
    uint32_t left = header->covered, last = 0;
    struct packed from = packed_of(header, body);
    const char *list = index_of(header, bucket, body);
    for (uint32_t i = 0; i < header->index; i++) {
        struct run run;
        memcpy(&run, list + i * sizeof run, sizeof run);
        if (run.at < last || run.bytes > left || run.at > bucket->bytes ||
            run.bytes > bucket->bytes - run.at || !is_of_grains(bucket, run.at | run.bytes))
            return -EPROTO;
        put(bucket, run.at, &from, run.bytes);
        left -= run.bytes;
        last = run.at + run.bytes;
    }
    return left ? -EPROTO : 0;
}

/* The bits of a body as a bucket, to find its runs. */
static struct bucket bits_of(const struct message_header *header, uint32_t grain, const void *bits)
{
    return (struct bucket){.bytes = header->index * 64 << grain,
                           .grain = grain,
                           .covered = (_Atomic uint64_t *)(void *)bits};
}

static int unpack_bitmap(const struct message_header *header, struct bucket *bucket,
                         const void *body)
{
    uint32_t left = header->covered, at, bytes;
    struct packed from = packed_of(header, body);
    struct bucket bits = bits_of(header, bucket->grain, index_of(header, bucket, body));
    for (uint32_t next = 0; bucket_run(&bits, next, &at, &bytes); next = at + bytes) {
        if (bytes > left)
            return -EPROTO;
        put(bucket, header->at + at, &from, bytes);
        left -= bytes;
    }
    return left ? -EPROTO : 0;
}

int message_unpack(const struct message_header *header, struct bucket *bucket, const void *body)
{
    struct packed from = packed_of(header, body);
    int rc = 0;
    if (header->form == MESSAGE_RUN && message_goes_into_place(header, bucket))
        bucket_cover(bucket, bucket->start + header->at, header->covered);
    else if (header->form == MESSAGE_RUN)
        put(bucket, header->at, &from, header->covered);
    else if (header->form == MESSAGE_LIST)
        rc = unpack_list(header, bucket, body);
    else if (header->form == MESSAGE_BITMAP)
        rc = unpack_bitmap(header, bucket, body);
    if (!rc && header->form != MESSAGE_FAILED)
        bucket->puts += header->puts - header->covered;
    bucket_done(bucket);
    return rc;
}

void *message_room_of(const struct message_header *header, struct bucket *room)
{
    uint32_t packed = header->covered + owners_of(room, header->covered);
    return room->image + (8 - packed % 8) % 8;
}

void *message_end_of(const struct message_header *header, struct bucket *bucket)
{
    if (header->form == MESSAGE_RUN)
        return message_place_of(header, bucket);
    return (char *)(void *)bucket->covered + bits_at(bucket, header->at) - header->covered;
}

/* What is left to move always fits behind where it goes, so nothing is overwritten unread. */
int message_spread(const struct message_header *header, struct bucket *bucket)
{
    uint32_t left = header->covered, from = header->at, at, bytes;
    if (header->form == MESSAGE_RUN)
        bucket_cover(bucket, bucket->start + header->at, header->covered);
    if (header->form != MESSAGE_BITMAP)
        return 0;
    const char *packed = message_end_of(header, bucket);
    for (; bucket_run(bucket, from, &at, &bytes); from = at + bytes) {
        if (bytes > left)
            return -EPROTO;
        memmove(bucket->image + at, packed, bytes);
        packed += bytes;
        left -= bytes;
    }
    memset((void *)bucket->covered, 0, bits_at(bucket, header->at));
    return left ? -EPROTO : 0;
}
