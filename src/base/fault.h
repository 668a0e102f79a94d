/* Named points at which tests make a program fail.
 *
 * BRIGADE_FAULT=POINT[:N][@RANK]: at POINT, on that rank (default: all), when its number has
 * reached N (default 0). Each user has a table of its points (an X-macro of symbol and name) and
 * one struct brg_fault; unset, a point costs one comparison.
 */
#ifndef BRG_BASE_FAULT_H
#define BRG_BASE_FAULT_H

#include <stddef.h>
#include <stdint.h>

struct brg_fault {
    int point; /* 0: none */
    uint64_t n;
};

/* Reads BRIGADE_FAULT; names[i] is the name of point i + 1. A point that is not in the table is
 * another user's: then nothing fails here. */
void brg_fault_read(struct brg_fault *fault, const char *const *names, size_t n_names,
                    uint32_t rank);

#endif
