/* What a template has open, before it serves. */
#ifndef BRG_FORK_OPENED_H
#define BRG_FORK_OPENED_H

#include <stddef.h>

/* Whether something besides 0 to 2, `listener` and what held.h names is open: what warming up has
 * left open would take the place of a rank's own. In words, then. */
int opened_besides(int listener, char *words, size_t size);

/* Before the process executes itself once more: all that opened_besides() looks at, and what held.h
 * names, is closed then. */
void opened_close_at_exec(void);

/* Lets go of 0 to 2: what the rank process that started the template has open is not kept open. */
void opened_let_go(void);

#endif
