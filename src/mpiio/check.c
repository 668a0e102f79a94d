/* For who starts programs with the library: BRIGADE_IO is looked at before they run, in which a
 * file whose hints cannot be read is left to MPI. */
#include <stdio.h>

#include "brigade/error.h"
#include "world/hints.h"

/* 0; or -EINVAL, and `text` says what is wrong. */
BRG_API int brigade_mpiio_check(const char *hints, char *text, size_t room);
int brigade_mpiio_check(const char *hints, char *text, size_t room)
{
    struct io_hints read;
    struct brg_error err = {.code = 0};
    hints_default(&read);
    int rc = hints_parse_environment(&read, hints, NULL, &err);
    snprintf(text, room, "%s", rc ? err.text : "");
    return rc;
}
