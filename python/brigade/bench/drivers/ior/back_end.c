/* The table of back ends: a new one is a file, and a line here. */
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#include "ior.h"

static const struct back_end *const back_ends[] = {
    &back_end_posix, &back_end_mpiio, &back_end_onesided, &back_end_laminar,
#ifdef WITH_HDF5
    &back_end_hdf5,
#endif
};
#define BACK_ENDS (sizeof back_ends / sizeof *back_ends)

const struct back_end *back_end_find(const char *name, int length)
{
    for (size_t i = 0; i < BACK_ENDS; i++)
        if (strlen(back_ends[i]->name) == (size_t)length &&
            strncasecmp(back_ends[i]->name, name, (size_t)length) == 0)
            return back_ends[i];
    return NULL;
}

void back_end_names(char *text, size_t room)
{
    size_t used = 0;
    *text = '\0';
    for (size_t i = 0; i < BACK_ENDS && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "  %-8s %s\n", back_ends[i]->name,
                                 back_ends[i]->help);
}

int why_not(char *why, const char *format, ...)
{
    va_list words;
    va_start(words, format);
    vsnprintf(why, WHY, format, words);
    va_end(words);
    return -1;
}
