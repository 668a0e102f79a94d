/* The definition of a function that a program would have got without the library that asks. */
#ifndef BRG_VIEW_NEXT_H
#define BRG_VIEW_NEXT_H

/* That of the objects that come after the caller's in the order in which they were loaded, or NULL:
 * as dlsym(RTLD_NEXT) finds it when a program starts, but that forgets the error that waits for the
 * program's dlerror(), and this touches nothing. Of several versions the default one. `own`: an
 * address in the caller's object. Not for what chooses its code when it is loaded (IFUNC). */
void *next_definition(const char *name, const void *own);

#endif
