/* What stands where: each word of 8 bytes follows from the rank that wrote it, its offset in the
 * file, and the test's signature.
 *
 *     key  = mix(mix(signature) + rank + 1)
 *     word = key + offset                      (timestamp, offset: compresses)
 *     word = mix(key + offset)                 (incompressible, random)
 *
 * mix is a bijection of 64 bits, so two offsets of one rank never have the same word, whatever is
 * between them, and a word says who wrote it and where it belongs. Two ranks' words are the same
 * with the chance of two random numbers.
 */
#include <string.h>
#include <strings.h>

#include "ior.h"

#define WORD ((int64_t)sizeof(uint64_t))

/* SplitMix64's output function, and the same backwards. */
static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t unmix(uint64_t z)
{
    z = (z ^ (z >> 31) ^ (z >> 62)) * 0x319642b2d24d8ec3u;
    z = (z ^ (z >> 27) ^ (z >> 54)) * 0x96de1b173f119089u;
    return z ^ (z >> 30) ^ (z >> 60);
}

static uint64_t key_of(const struct test *t, int rank)
{
    return mix(mix((uint64_t)t->signature) + (uint64_t)rank + 1);
}

int packet_known(const char *packet)
{
    static const char *const names[] = {"timestamp", "offset", "incompressible", "random"};
    for (int i = 0; i < 4; i++)
        if (strcasecmp(packet, names[i]) == 0 ||
            strncasecmp(packet, names[i], 1 + !!packet[1]) == 0)
            return 1;
    return 0;
}

int packet_compresses(const struct test *t)
{
    int first = t->o.packet[0] | 0x20;
    return first == 't' || first == 'o';
}

void words_fill(const struct test *t, int rank, char *buf, int64_t bytes, int64_t offset)
{
    uint64_t *word = (uint64_t *)buf, next = key_of(t, rank) + (uint64_t)offset;
    int plain = packet_compresses(t);
    for (int64_t i = 0; i < bytes / WORD; i++, next += (uint64_t)WORD)
        word[i] = plain ? next : mix(next);
}

void words_spoil(char *buf, int64_t bytes)
{
    memset(buf, 0x55, (size_t)bytes);
}

void words_compare(const struct test *t, int rank, const char *buf, int64_t bytes, int64_t offset,
                   struct wrong *wrong)
{
    const uint64_t *word = (const uint64_t *)buf;
    uint64_t next = key_of(t, rank) + (uint64_t)offset;
    int plain = packet_compresses(t);
    for (int64_t i = 0; i < bytes / WORD; i++, next += (uint64_t)WORD) {
        uint64_t expected = plain ? next : mix(next);
        if (word[i] == expected)
            continue;
        if (wrong->words++ == 0) {
            wrong->offset = offset + i * WORD;
            wrong->expected = expected;
            wrong->found = word[i];
        }
    }
}

int word_owner(const struct test *t, uint64_t word, struct owner *owner)
{
    uint64_t place = packet_compresses(t) ? word : unmix(word);
    uint64_t end = (uint64_t)(t->o.block * t->o.segments * (t->o.own_file ? 1 : t->ranks));
    for (int rank = 0; rank < t->ranks; rank++) {
        uint64_t offset = place - key_of(t, rank);
        if (offset < end && offset % (uint64_t)WORD == 0) {
            *owner = (struct owner){rank, (int64_t)offset};
            return 1;
        }
    }
    return 0;
}
