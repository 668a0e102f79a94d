/* What travels from node to node for one window: a header, and a body of as many bytes as it says.
 * Pure. A header that came from elsewhere is believed only where it fits the bucket.
 *
 *     EMPTY, FAILED   no body
 *     RUN             the covered bytes are one run: as they lie in the image, from `at` on
 *     BITMAP          the covered bytes, then the words of the bitmap that they are in, from image
 *                     byte `at` on
 *     LIST            the same, then {at, bytes} of each run
 *
 * Where the bucket has an owner map, the words of these bytes follow them.
 *
 * Buckets are as bucket_lay lays them: it matters that the bitmap follows the image, so that
 * packed bytes and bitmap become one body where they lie. */
#ifndef BRG_IO_HANDOFF_MESSAGE_H
#define BRG_IO_HANDOFF_MESSAGE_H

#include "move/bucket.h"

enum message_form {
    MESSAGE_EMPTY = 1,
    MESSAGE_FAILED,
    MESSAGE_RUN,
    MESSAGE_BITMAP,
    MESSAGE_LIST
};

struct message_header {
    uint64_t window;
    uint64_t puts;    /* bytes put into the bucket so far; more than covered: some were twice */
    uint32_t form;    /* enum message_form */
    uint32_t at;      /* image byte of the run, or of the first grain of the bitmap */
    uint32_t covered; /* bytes that are covered */
    uint32_t index;   /* words of the bitmap, or runs of the list */
    uint32_t body;    /* bytes that follow */
    uint32_t owned;   /* owners travel */
};

/* Makes the message of a bucket whose puts are all done. `*body` lies in the bucket. In place: the
 * bucket is of no use afterwards (unless there is one run, and no owner map). */
void message_pack(struct bucket *bucket, uint64_t window, struct message_header *header,
                  const void **body);

/* The same, the bucket stays: several runs are packed into `room`. Not with an owner map. */
void message_pack_into(struct bucket *bucket, uint64_t window, struct bucket *room,
                       struct message_header *header, const void **body);

/* Whether message_pack_into would need room: more than one run. */
int message_needs_room(const struct bucket *bucket);

/* A node that asks for bytes sends its bucket's bitmap, in which they are marked: so many bytes.
 * It is received to the bitmap of `room`. */
size_t message_asks_bytes(const struct bucket *bucket);

/* What `bucket` holds of what is asked for in `room`: message_pack_into, and whether that would
 * pack. What lies between is sent as well where that is less than what is asked for. */
void message_pack_asked(const struct bucket *bucket, uint64_t window, struct bucket *room,
                        struct message_header *header, const void **body);
int message_asked_needs_room(const struct bucket *bucket, const struct bucket *room);

/* 0, or -EPROTO where a header is not one for this window and this bucket. */
int message_check(const struct message_header *header, uint64_t window,
                  const struct bucket *bucket);

/* Whether the body may be received to where it belongs (message_place_of), or must go through
 * another bucket's room (message_room_of). */
int message_goes_into_place(const struct message_header *header, const struct bucket *bucket);
void *message_place_of(const struct message_header *header, struct bucket *bucket);
void *message_room_of(const struct message_header *header, struct bucket *room);

/* Adds the body, from where one of the two said, to what the bucket holds, and counts it as put.
 * 0 or -EPROTO. */
int message_unpack(const struct message_header *header, struct bucket *bucket, const void *body);

/* A body that becomes the only content of a clear bucket needs no other room: it is received to
 * message_end_of, so that its bitmap lands on the bucket's own, and spread from there. 0 or
 * -EPROTO. Not with an owner map, not LIST. Nothing is counted as put. */
void *message_end_of(const struct message_header *header, struct bucket *bucket);
int message_spread(const struct message_header *header, struct bucket *bucket);

#endif
