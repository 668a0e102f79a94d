/* A bucket's bytes arrive in another bucket whatever their runs, and a broken message stays inside.
 * Built with AddressSanitizer too: there an overrun ends the program. */
#include "claim.h"
#include "move/handoff_message.h"

#include <stdlib.h>
#include <string.h>

#ifdef FEWER_ROUNDS
#define ROUNDS 1000u
#else
#define ROUNDS 3000u
#endif
#define BYTES 8192u
#define START (UINT64_C(3) << 33)
#define WINDOW 5

static uint32_t grain;

static uint32_t cut(uint32_t bytes)
{
    return bytes >> grain << grain;
}

struct room {
    struct bucket bucket;
    char *memory;
};

/* Memory of exactly the room: what lies behind is not ours. */
static void make(struct room *r, int owned)
{
    r->memory = aligned_alloc(64, owned ? bucket_owned_room(BYTES, grain) : bucket_room(BYTES));
    bucket_lay(&r->bucket, r->memory, BYTES, grain, owned);
    bucket_clear(&r->bucket, START);
    memset(r->bucket.image, 0xee, BYTES);
}

static struct room from, to, spare;

static void make_all(int owned)
{
    make(&from, owned);
    make(&to, owned);
    make(&spare, owned);
}

static void free_all(void)
{
    free(from.memory);
    free(to.memory);
    free(spare.memory);
}

static int want[BYTES];

static void put(struct room *r, uint32_t at, uint32_t bytes, uint32_t rank)
{
    unsigned char piece[BYTES];
    for (uint32_t i = 0; i < bytes; i++) {
        piece[i] = (unsigned char)(at + i + 31 * rank);
        want[at + i] = piece[i];
    }
    bucket_put(&r->bucket, START + at, piece, bytes, rank);
}

/* Pieces of `bytes`, `gap` apart, in [at, end); `jitter` varies both. */
static void put_pieces(struct room *r, uint32_t at, uint32_t end, uint32_t bytes, uint32_t gap,
                       uint32_t jitter)
{
    bytes = cut(bytes) ? cut(bytes) : 1u << grain;
    gap = cut(gap) ? cut(gap) : 1u << grain;
    for (at = cut(at); at + bytes + jitter <= end;) {
        uint32_t n = bytes + (jitter ? cut((uint32_t)rand() % jitter) : 0);
        put(r, at, n, 0);
        at += n + gap + (jitter ? cut((uint32_t)rand() % jitter) : 0);
    }
}

static void check_is(const struct bucket *b, const char *what, unsigned round)
{
    uint32_t next = 0, at, bytes, i = 0;
    int before = failures;
    while (bucket_run(b, next, &at, &bytes)) {
        for (; i < at; i++)
            CHECK(want[i] < 0, "%s %u: byte %u is missing", what, round, i);
        for (; i < at + bytes; i++)
            CHECK(want[i] == (unsigned char)b->image[i], "%s %u: byte %u is wrong", what, round, i);
        next = at + bytes;
        if (failures > before)
            return;
    }
    for (; i < BYTES && failures == before; i++)
        CHECK(want[i] < 0, "%s %u: byte %u is missing at the end", what, round, i);
}

/* Runs of all kinds; returns whether there are any bytes. */
static void fill(unsigned round)
{
    static const uint32_t sizes[] = {1, 7, 24, 63, 64, 65, 300, 1024, 4000};
    static const uint32_t gaps[] = {1, 24, 40, 64, 200, 3000};
    srand(round);
    memset(want, -1, sizeof want);
    uint32_t at = round % 5 ? (uint32_t)rand() % BYTES : 0;
    uint32_t end = round % 7 ? at + (uint32_t)rand() % (BYTES - at + 1) : BYTES;
    put_pieces(&from, at, end, sizes[round % 9], gaps[round / 9 % 6], round % 2 ? 9 : 0);
    if (round % 11 == 0 && !grain) /* as many bytes as there are, but one */
        memset(want, -1, sizeof want), bucket_clear(&from.bucket, START), put(&from, 0, 100, 0),
            put(&from, 101, BYTES - 101, 0);
    bucket_done(&from.bucket);
}

static unsigned seen[MESSAGE_LIST + 1];

static void what_was_packed_in_place_is_unpacked(void)
{
    struct message_header header;
    const void *body;
    for (unsigned round = 0; round < ROUNDS; round++) {
        int owned = round % 3 == 2;
        grain = round % 4 == 3 ? 3 : 0;
        make_all(owned);
        fill(round);
        message_pack(&from.bucket, WINDOW, &header, &body);
        seen[header.form]++;
        CHECK(message_check(&header, WINDOW, &to.bucket) == 0, "round %u", round);
        void *place = message_goes_into_place(&header, &to.bucket)
                          ? message_place_of(&header, &to.bucket)
                          : message_room_of(&header, &spare.bucket);
        memcpy(place, body, header.body);
        CHECK(message_unpack(&header, &to.bucket, place) == 0, "round %u", round);
        check_is(&to.bucket, "packed in place", round);
        CHECK(!bucket_overlapped(&to.bucket), "round %u", round);
        free_all();
    }
    for (int form = MESSAGE_RUN; form <= MESSAGE_LIST; form++)
        CHECK(seen[form] > ROUNDS / 30, "form %d was seen %u times", form, seen[form]);
}

static void what_was_packed_beside_spreads_without_room(void)
{
    struct message_header header;
    const void *body;
    for (unsigned round = 0; round < ROUNDS; round++) {
        grain = round % 4 == 3 ? 3 : 0;
        make_all(0);
        fill(round);
        message_pack_into(&from.bucket, WINDOW, &spare.bucket, &header, &body);
        check_is(&from.bucket, "the bucket that stays", round);
        CHECK((header.form == MESSAGE_BITMAP) == message_needs_room(&from.bucket), "round %u",
              round);
        CHECK(message_check(&header, WINDOW, &to.bucket) == 0, "round %u", round);
        if (header.form != MESSAGE_EMPTY)
            memcpy(message_end_of(&header, &to.bucket), body, header.body);
        CHECK(message_spread(&header, &to.bucket) == 0, "round %u", round);
        check_is(&to.bucket, "spread", round);
        free_all();
    }
}

static int asked[BYTES];

/* Marks in the spare bucket what another node wants, of bytes that are there and that are not. */
static void ask(unsigned round)
{
    uint32_t step = cut(round % 3 ? 400 : 90),
             length = cut((uint32_t)rand() % step) + (1u << grain);
    memset(asked, 0, sizeof asked);
    for (uint32_t at = cut((uint32_t)rand() % BYTES); at + length <= BYTES; at += step) {
        bucket_mark(&spare.bucket, START + at, length);
        for (uint32_t i = at; i < at + length; i++)
            asked[i] = 1;
    }
    bucket_done(&spare.bucket);
}

static int is_covered(const struct bucket *b, uint32_t at)
{
    return b->covered[(at >> grain) / 64] >> (at >> grain) % 64 & 1;
}

/* What was asked for, in order, and at most as much again of what lies between. */
static void check_asked(const struct message_header *header, unsigned round)
{
    uint32_t n = 0, more = 0;
    for (uint32_t i = 0; i < BYTES; i++) {
        int has = want[i] >= 0, got = is_covered(&to.bucket, i);
        n += asked[i] && has;
        more += got && !asked[i];
        if (got ? has && (unsigned char)to.bucket.image[i] == want[i] : !asked[i] || !has)
            continue;
        CHECK(0, "asked, round %u: byte %u is %s", round, i, got ? "wrong" : "missing");
        return;
    }
    CHECK(more <= n, "round %u: %u were asked for, %u more have come", round, n, more);
    CHECK(header->form != MESSAGE_EMPTY || n == 0, "round %u: %u bytes are not sent", round, n);
}

static void what_was_asked_for_arrives_and_little_else(void)
{
    unsigned forms[MESSAGE_LIST + 1] = {0}, beyond = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct message_header header;
        const void *body;
        grain = round % 4 == 3 ? 3 : 0;
        make_all(0);
        fill(round % 2 ? round : 11);
        if (round % 6 == 4) {
            bucket_clear(&from.bucket, START);
            put(&from, 0, BYTES, 0);
            bucket_done(&from.bucket);
        }
        if (round % 20 == 8) { /* all of it is asked for, and is not one run */
            bucket_mark(&spare.bucket, START, BYTES);
            bucket_done(&spare.bucket);
            for (uint32_t i = 0; i < BYTES; i++)
                asked[i] = 1;
        } else
            ask(round);
        int packs = message_asked_needs_room(&from.bucket, &spare.bucket);
        message_pack_asked(&from.bucket, WINDOW, &spare.bucket, &header, &body);
        CHECK((header.form == MESSAGE_BITMAP) == packs, "round %u", round);
        CHECK(message_check(&header, WINDOW, &to.bucket) == 0, "round %u", round);
        if (header.form != MESSAGE_EMPTY)
            memcpy(message_end_of(&header, &to.bucket), body, header.body);
        CHECK(message_spread(&header, &to.bucket) == 0, "round %u", round);
        check_is(&from.bucket, "the bucket that was asked", round);
        check_asked(&header, round);
        forms[header.form]++;
        beyond += header.body > BYTES;
        free_all();
        if (failures)
            return;
    }
    CHECK(forms[MESSAGE_RUN] > ROUNDS / 30 && forms[MESSAGE_BITMAP] > ROUNDS / 30 && beyond > 9,
          "%u runs, %u bitmaps, %u beyond the image", forms[MESSAGE_RUN], forms[MESSAGE_BITMAP],
          beyond);
}

static void two_nodes_bytes_are_joined_and_overlap_is_noticed(void)
{
    struct message_header header;
    const void *body;
    grain = 0;
    for (int owned = 0; owned < 2; owned++)
        for (int again = 0; again < 2; again++) {
            make_all(owned);
            memset(want, -1, sizeof want);
            put(&to, 64, 1000, 7);
            for (uint32_t i = 0; i < 5; i++)
                put(&from, 2000 + 100 * i, 50, 3);
            if (again) { /* rank 7's stay */
                bucket_put(&from.bucket, START + 500, from.memory, 100, 3);
            }
            bucket_done(&from.bucket);
            bucket_done(&to.bucket);
            message_pack(&from.bucket, WINDOW, &header, &body);
            void *room = message_room_of(&header, &spare.bucket);
            memcpy(room, body, header.body);
            CHECK(message_unpack(&header, &to.bucket, room) == 0, "owned %d", owned);
            CHECK(bucket_overlapped(&to.bucket) == again, "owned %d again %d", owned, again);
            if (owned || !again)
                check_is(&to.bucket, "joined", (unsigned)owned);
            free_all();
        }
}

/* An overlap inside one node is told by the sums, though its message covers each byte once. */
static void an_overlap_on_another_node_is_noticed(void)
{
    struct message_header header;
    const void *body;
    make_all(0);
    put(&from, 10, 100, 0);
    put(&from, 50, 100, 1);
    bucket_done(&from.bucket);
    message_pack(&from.bucket, WINDOW, &header, &body);
    memcpy(message_place_of(&header, &to.bucket), body, header.body);
    message_unpack(&header, &to.bucket, NULL);
    CHECK(bucket_overlapped(&to.bucket), "covered %u puts %llu", header.covered,
          (unsigned long long)header.puts);
    free_all();
}

static void a_broken_message_is_refused_or_harmless(void)
{
    struct message_header good, header;
    const void *body;
    unsigned refused = 0;
    for (unsigned round = 0; round < 4 * ROUNDS; round++) {
        int owned = round % 3 == 2;
        grain = round % 4 == 3 ? 3 : 0;
        make_all(owned);
        fill(round % 500);
        message_pack(&from.bucket, WINDOW, &good, &body);
        header = good;
        srand(round);
        uint32_t *fields[] = {&header.form, &header.at, &header.covered, &header.index,
                              &header.body};
        if (round % 2)
            *fields[rand() % 5] = round % 4 == 1 ? (uint32_t)rand() % BYTES : (uint32_t)rand() * 2;
        if (message_check(&header, WINDOW, &to.bucket)) {
            refused++;
        } else if (header.form >= MESSAGE_RUN) {
            void *place = message_goes_into_place(&header, &to.bucket)
                              ? message_place_of(&header, &to.bucket)
                              : message_room_of(&header, &spare.bucket);
            memcpy(place, body, header.body < good.body ? header.body : good.body);
            for (int flips = 0; flips < 4 && header.body; flips++)
                ((char *)place)[(uint32_t)rand() % header.body] ^= (char)(1 << rand() % 8);
            refused += message_unpack(&header, &to.bucket, place) != 0;
            if (header.form == MESSAGE_BITMAP && !owned) {
                bucket_clear(&to.bucket, START);
                memcpy(message_end_of(&header, &to.bucket), body, header.body);
                message_spread(&header, &to.bucket);
            }
        }
        free_all();
    }
    CHECK(refused > ROUNDS, "%u were refused", refused);
    CHECK(message_check(&good, WINDOW + 1, &to.bucket), "another window");
}

int main(void)
{
    what_was_packed_in_place_is_unpacked();
    what_was_packed_beside_spreads_without_room();
    what_was_asked_for_arrives_and_little_else();
    two_nodes_bytes_are_joined_and_overlap_is_noticed();
    an_overlap_on_another_node_is_noticed();
    a_broken_message_is_refused_or_harmless();
    printf(failures ? "%d failures\n" : "ok\n", failures);
    return failures != 0;
}
