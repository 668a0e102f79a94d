/* A preloaded library's hooks: their declarations, and the definitions that stand behind them.
 *
 * A library lists what it takes the place of once, in a hooks.def (see view/hooks.def), names that
 * file in BRG_HOOKS before it includes this, and has base/real_find.h in one of its files.
 *
 * Functions are declared under names of our own with the real ones as assembler labels, so that
 * nothing in the libc's headers (inline versions, large-file redirections) gets in the way.
 */
#ifndef BRG_BASE_REAL_CALLS_H
#define BRG_BASE_REAL_CALLS_H

#define BRG_SECTION_ALL
#define BRG_HOOK(type, name, parameters) \
    type hook_##name parameters __asm__(#name) __attribute__((visibility("default")));
#include BRG_HOOKS

/* The definitions that the program would have got without us. */
struct real_calls {
#define BRG_HOOK(type, name, parameters) type(*name) parameters;
#include BRG_HOOKS
};
#undef BRG_SECTION_ALL
extern struct real_calls real __attribute__((visibility("hidden")));
extern int real_found __attribute__((visibility("hidden"))); /* all of them have been looked for */
void *real_find(const char *name) __attribute__((visibility("hidden")));

/* The next definition of a function, or NULL; before all have been looked for, looked up on the
 * spot. */
#define REAL(name)                                               \
    (real.name || __atomic_load_n(&real_found, __ATOMIC_RELAXED) \
         ? real.name                                             \
         : (__typeof__(real.name))real_find(#name))

/* An export that is the same code as a hook of this file. */
#define BRG_DEFINE_ALIAS(name, of)                          \
    extern __typeof__(hook_##of) hook_##name __asm__(#name) \
        __attribute__((alias(#of), visibility("default")));

#endif
