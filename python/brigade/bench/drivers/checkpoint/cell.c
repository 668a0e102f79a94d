/* See cell.h. */
#include "cell.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse_numbers(const char *text, uint64_t *numbers)
{
    int n = 0;
    char *end = (char *)text;
    while (n < MAX_DIMS && *text) {
        numbers[n++] = strtoull(text, &end, 10);
        if (end == text)
            return -1;
        text = *end == ',' ? end + 1 : end;
    }
    return *text ? -1 : n;
}

static int parse_word(struct cell *cell, const char *key, const char *value)
{
    uint64_t number = strtoull(value, NULL, 10);
    struct {
        const char *key;
        int *place;
    } const small[] = {{"id", &cell->id},     {"calls", &cell->calls},     {"sync", &cell->sync},
                       {"read", &cell->read}, {"publish", &cell->publish}, {"check", &cell->check},
                       {NULL, NULL}};
    struct {
        const char *key;
        uint64_t *place;
    } const large[] = {{"element", &cell->element},
                       {"header", &cell->header},
                       {"seed", &cell->seed},
                       {NULL, NULL}};
    struct {
        const char *key;
        char *place;
        size_t bytes;
    } const texts[] = {{"back", cell->back_end, sizeof cell->back_end},
                       {"hints", cell->hints, sizeof cell->hints},
                       {NULL, NULL, 0}};
    for (int i = 0; small[i].key; i++)
        if (strcmp(key, small[i].key) == 0)
            return *small[i].place = (int)number, 0;
    for (int i = 0; large[i].key; i++)
        if (strcmp(key, large[i].key) == 0)
            return *large[i].place = number, 0;
    for (int i = 0; texts[i].key; i++)
        if (strcmp(key, texts[i].key) == 0)
            return snprintf(texts[i].place, texts[i].bytes, "%s", value) >= (int)texts[i].bytes;
    if (strcmp(key, "grid") == 0)
        return (cell->ndims = parse_numbers(value, cell->grid)) < 1;
    if (strcmp(key, "count") == 0)
        return parse_numbers(value, cell->count) < 1;
    return -1;
}

const char *cell_parse(struct cell *cell, char *line)
{
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        if (!value)
            return word;
        *value = '\0';
        if (parse_word(cell, word, value + 1) != 0)
            return word;
    }
    return NULL;
}

int cell_calls(const struct cell *cell)
{
    return cell->header ? 2 : cell->calls;
}

static uint64_t block_bytes(const struct cell *cell)
{
    uint64_t bytes = cell->element;
    for (int d = 0; d < cell->ndims; d++)
        bytes *= cell->count[d];
    return bytes;
}

uint64_t cell_bytes(const struct cell *cell)
{
    return cell->header + (uint64_t)cell->calls * block_bytes(cell);
}

uint64_t cell_file_bytes(const struct cell *cell)
{
    return (uint64_t)cell->size * cell_bytes(cell);
}

static void region_block(const struct cell *cell, int call, struct block *block)
{
    uint64_t large = block_bytes(cell);
    block->ndims = 1;
    block->element = 1;
    block->offset = (uint64_t)cell->rank * (cell->header + large) + (call ? cell->header : 0);
    block->bytes = block->shape[0] = block->count[0] = call ? large : cell->header;
    block->start[0] = 0;
}

void cell_block(const struct cell *cell, int call, struct block *block)
{
    uint64_t place = (uint64_t)cell->rank;
    if (cell->header) {
        region_block(cell, call, block);
        return;
    }
    block->ndims = cell->ndims;
    block->element = cell->element;
    block->bytes = block_bytes(cell);
    block->offset = (uint64_t)call * (uint64_t)cell->size * block->bytes;
    for (int d = cell->ndims - 1; d >= 0; d--) {
        block->shape[d] = cell->grid[d] * cell->count[d];
        block->count[d] = cell->count[d];
        block->start[d] = place % cell->grid[d] * cell->count[d];
        place /= cell->grid[d];
    }
}

int block_walk(const struct block *block,
               int (*run)(void *context, uint64_t offset, uint64_t at, uint64_t bytes),
               void *context)
{
    int last = block->ndims - 1;
    uint64_t index[MAX_DIMS] = {0}, bytes = block->count[last] * block->element;
    for (uint64_t at = 0; at < block->bytes; at += bytes) {
        uint64_t element = 0;
        for (int d = 0; d <= last; d++)
            element = element * block->shape[d] + block->start[d] + index[d];
        int rc = run(context, block->offset + element * block->element, at, bytes);
        if (rc)
            return rc;
        for (int d = last - 1; d >= 0 && ++index[d] == block->count[d]; d--)
            index[d] = 0;
    }
    return 0;
}

/* What belongs into the 8 bytes at an offset (SplitMix64): no two places look alike. */
static uint64_t signature(const struct cell *cell, uint64_t offset)
{
    uint64_t z = offset + (cell->seed + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

int64_t bytes_wrong(const struct cell *cell, const char *buf, uint64_t offset, uint64_t bytes)
{
    uint64_t word;
    for (uint64_t i = 0; i < bytes; i += sizeof word) {
        memcpy(&word, buf + i, sizeof word);
        if (word != signature(cell, offset + i))
            return (int64_t)(offset + i);
    }
    return -1;
}

struct contents {
    const struct cell *cell;
    char *buf;
    int64_t wrong;
};

static int fill_run(void *context, uint64_t offset, uint64_t at, uint64_t bytes)
{
    struct contents *c = context;
    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = signature(c->cell, offset + i);
        memcpy(c->buf + at + i, &word, sizeof word);
    }
    return 0;
}

static int check_run(void *context, uint64_t offset, uint64_t at, uint64_t bytes)
{
    struct contents *c = context;
    c->wrong = bytes_wrong(c->cell, c->buf + at, offset, bytes);
    return c->wrong >= 0;
}

static void walk_all(struct contents *c, int (*run)(void *, uint64_t, uint64_t, uint64_t))
{
    for (int call = 0; call < cell_calls(c->cell); call++) {
        struct block block;
        cell_block(c->cell, call, &block);
        if (block_walk(&block, run, c))
            return;
        c->buf += block.bytes;
    }
}

void cell_fill(const struct cell *cell, char *buf)
{
    struct contents c = {.cell = cell, .buf = buf, .wrong = -1};
    walk_all(&c, fill_run);
}

int64_t cell_wrong(const struct cell *cell, const char *buf)
{
    struct contents c = {.cell = cell, .buf = (char *)buf, .wrong = -1};
    walk_all(&c, check_run);
    return c.wrong;
}

void outcome_lap(struct outcome *outcome, int phase)
{
    double end = now();
    outcome->seconds[phase] += end - outcome->last;
    outcome->last = end;
}

int outcome_fail(struct outcome *outcome, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(outcome->why, sizeof outcome->why, format, words);
    va_end(words);
    return -1;
}
