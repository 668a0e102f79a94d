/* What the constructors of types share. */
#ifndef BRG_TYPE_TYPE_INSIDE_H
#define BRG_TYPE_TYPE_INSIDE_H

#include "type/type.h"

typedef __int128 wide; /* no sum of two products of 63 bits leaves it */

/* The bounds set by hand that copies of types carry into what is made of them. */
struct bounds {
    wide lb, ub;
    int set_lb, set_ub;
};

/* Copies of `old` whose places reach from `first` to `last`, in bytes. */
void bounds_add(struct bounds *bounds, const struct type *old, wide first, wide last);

/* A type of these data and bounds. Takes the data's layout, also where it fails. `name` is the
 * constructor's. */
int type_make(const char *name, struct placed data, const struct bounds *bounds, struct type **out,
              struct brg_error *err);

/* The error of a constructor that got `rc` from the layout; returns rc. */
int type_failed(const char *name, int rc, struct brg_error *err);

#endif
