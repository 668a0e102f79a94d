/* What the auditor remembers of the objects that are loaded.
 *
 * For ld.so an object answers to its soname and to every name by which it was found, whoever asks.
 * If the auditor answers a bare name with a path, and the object there is loaded already, ld.so
 * remembers the path instead of the name: then it has to search itself.
 *
 * Freestanding, like the auditor, and like it under ld.so's lock.
 */
#ifndef BRG_VIEW_AUDIT_LOADED_H
#define BRG_VIEW_AUDIT_LOADED_H

#include <link.h>
#include <stdint.h>

/* An object was loaded from the staged file of an index's entry; past 2,048 it is forgotten. */
void audit_note_loaded(uint32_t entry);

/* Whether that ever was so, in any namespace. */
int audit_was_loaded(uint32_t entry);

/* Whether the namespace of `map` has an object whose file is called `base`. */
int audit_has_file(const char *base, const struct link_map *map);

/* `asked`, a relative path, led to the file `path`: ld.so remembers an object by what was asked,
 * also when the working directory has changed. Past 16 KiB of names nothing more is kept. */
void audit_note_alias(const char *asked, const char *path);

/* The file that `asked` led to before, if an object of that file name is in the namespace of `map`;
 * else NULL. */
const char *audit_alias(const char *asked, const struct link_map *map);

/* An object of the program's own namespace; the first one is the program. */
void audit_note_program(const struct link_map *map);

/* Whether an object is in the namespace of the program, where dlerror() is ours. NULL is not. */
int audit_is_in_base(const struct link_map *map);

#endif
