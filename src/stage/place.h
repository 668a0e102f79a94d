/* Nodes take their places in the ring by what lies between them. */
#ifndef BRG_STAGE_PLACE_H
#define BRG_STAGE_PLACE_H

#include <stdint.h>

struct put;

/* What came of it, on rank 0. */
struct place_outcome {
    const char *from;   /* "slurm", "file", or NULL: ranks stand as they were started */
    uint32_t crossings; /* links of the ring between nodes of different switches; */
    uint32_t before;    /* as many would have been */
    char warning[1024]; /* "" */
};

/* Collective; p->net becomes one in the new order. Whatever is wrong with a topology is a warning.
 * If the others do not answer, p says so. */
void put_place(struct put *p);
void put_unplace(struct put *p);

#endif
