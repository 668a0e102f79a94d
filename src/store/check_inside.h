/* What the files of checking share. */
#ifndef BRG_IO_CHECK_INSIDE_H
#define BRG_IO_CHECK_INSIDE_H

#include "store/check.h"
#include "store/store_inside.h"

int check_parts(const char *path, check_progress *progress, void *context,
                struct check_report *report, struct brg_error *err);

#endif
