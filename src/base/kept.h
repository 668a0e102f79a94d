/* Variables that the shell in front of a rank's program loses.
 *
 * A shell may keep only those whose names it could give to variables of its own: dash drops bash's
 * exported functions (BASH_FUNC_module%%), and names with a dot. `brigade run` therefore puts them
 * into one variable as well (python/brigade/launch/guard.py), quoted for a shell:
 *
 *   BRIGADE_KEPT='BASH_FUNC_m%%=() {  echo it'\''s; }' 'a.b=1'
 */
#ifndef BRG_BASE_KEPT_H
#define BRG_BASE_KEPT_H

/* Gives this process's environment back what is kept, where nothing has that name, and takes the
 * variable itself away. Without memory for a variable that one is lost. For a process of one
 * thread. */
void kept_restore(void);

#endif
