/* Filling a struct brg_error. */
#ifndef BRG_BASE_ERROR_H
#define BRG_BASE_ERROR_H

#include "brigade/error.h"

/* Writes the text (cut if too long) and the code into *err, unless err is NULL. Returns `code`,
 * so that a failing call ends with `return brg_error_set(err, -ENOENT, "...")`. */
int brg_error_set(struct brg_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As brg_error_set, with ": " and the system's words for -code behind the text. */
int brg_error_system(struct brg_error *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
