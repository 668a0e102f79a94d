/* Whether a folder is a safe place: nobody but root and this user can exchange what lies in it.
 *
 * As sshd asks of a key's folder: every directory on the way, through every symbolic link on it, is
 * root's or ours, and others may write to it only if it is sticky (then they cannot rename or
 * remove what is not theirs). After that has passed, names that were checked stay what they were.
 */
#ifndef BRG_STAGE_TRUST_H
#define BRG_STAGE_TRUST_H

#include "brigade/error.h"

/* 0, or -EPERM (or the errno of looking) with text that names the directory and what to do. */
int trust_folder(const char *path, struct brg_error *err);

#endif
