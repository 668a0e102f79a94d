/* What file.c, which makes files and descs, shares with drop.c, which gives them up. */
#ifndef BRG_BUFFER_FILE_INSIDE_H
#define BRG_BUFFER_FILE_INSIDE_H

#include "buffer/file.h"

#pragma GCC visibility push(hidden)
/* Files and descs are taken with it held; it is taken before any file's lock. */
extern struct lock files_lock;
extern int owed[TABLE_FDS]; /* by descriptor: the errno that `owing` stands for */
extern int file_stopped;    /* no file is buffered any more */
#pragma GCC visibility pop

/* This is a child of fork, with memory of its own. */
void file_forked(void);

/* The locked file's slot is free again. */
void file_forget(struct file *f);

#endif
