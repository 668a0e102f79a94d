/* Pieces of one request that share bytes: of these, the later piece's count. */
#include <stdlib.h>

#include "move/request_overlap.h"

/* Pieces that have begun and may not have ended, the one that counts most at the top. */
struct heap {
    const struct request_piece **piece;
    size_t n;
};

static void push(struct heap *h, const struct request_piece *piece)
{
    size_t at = h->n++;
    for (; at && h->piece[(at - 1) / 2]->at < piece->at; at = (at - 1) / 2)
        h->piece[at] = h->piece[(at - 1) / 2];
    h->piece[at] = piece;
}

static void pop(struct heap *h)
{
    const struct request_piece *last = h->piece[--h->n];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < h->n; at = child) {
        if (child + 1 < h->n && h->piece[child + 1]->at > h->piece[child]->at)
            child++;
        if (h->piece[child]->at <= last->at)
            break;
        h->piece[at] = h->piece[child];
    }
    h->piece[at] = last;
}

static uint64_t end_of(const struct request_piece *piece)
{
    return piece->offset + piece->bytes;
}

/* From one place where the piece that counts changes to the next: every piece comes and goes
 * once. */
static size_t sweep(struct heap *h, const struct request_piece *in, size_t n,
                    struct request_piece *out)
{
    size_t made = 0, next = 0;
    uint64_t from = 0;
    while (h->n || next < n) {
        if (!h->n && in[next].offset > from)
            from = in[next].offset;
        while (next < n && in[next].offset <= from)
            push(h, &in[next++]);
        while (h->n && end_of(h->piece[0]) <= from)
            pop(h);
        if (!h->n)
            continue;
        const struct request_piece *top = h->piece[0];
        uint64_t until = end_of(top);
        while (next < n && in[next].offset < until && in[next].at < top->at)
            push(h, &in[next++]);
        if (next < n && in[next].offset < until)
            until = in[next].offset;
        out[made++] = (struct request_piece){
            .offset = from, .bytes = until - from, .at = top->at + (from - top->offset)};
        from = until;
    }
    return made;
}

int request_part(const struct request_piece *in, size_t n, struct request_piece *out, size_t *made)
{
    struct heap heap = {.piece = malloc(n * sizeof(*heap.piece))};
    if (!heap.piece)
        return -1;
    *made = sweep(&heap, in, n, out);
    free(heap.piece);
    return 0;
}
