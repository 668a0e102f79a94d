/* Where our static programs begin, before their C library does. The linker is told so:
 * -Wl,-e,brigade_start. */
#ifndef BRG_BASE_STATIC_START_H
#define BRG_BASE_STATIC_START_H

/* Puts back what brigade_start has hidden. First in main; does nothing in a program that is not
 * static. */
void static_start_show(void);

#endif
