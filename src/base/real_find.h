/* The table that base/real_calls.h declares: for one file of a library. */
#ifndef BRG_BASE_REAL_FIND_H
#define BRG_BASE_REAL_FIND_H

#include "base/next_definition.h"
#include "base/real_calls.h"

struct real_calls real;
int real_found;

void *real_find(const char *name)
{
    return next_function(name);
}

/* Looks for all of them, once. */
static void real_find_all(void)
{
#define BRG_SECTION_ALL
#define BRG_HOOK(type, name, parameters) real.name = (__typeof__(real.name))real_find(#name);
#include BRG_HOOKS
#undef BRG_SECTION_ALL
    __atomic_store_n(&real_found, 1, __ATOMIC_RELEASE);
}

#endif
