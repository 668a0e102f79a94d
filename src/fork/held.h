/* Descriptors that libraries of a template hold of their own files, and ranks go on holding.
 *
 * libffi's static trampolines (where it is built with them: by default; `ctypes` makes one as it is
 * imported) are mapped from libffi's own file, which stays open for the next table of them, and its
 * number is the library's secret. So it has to be the same in every rank, out of the way of what
 * ranks have open: above all numbers that programs use. */
#ifndef BRG_FORK_HELD_H
#define BRG_FORK_HELD_H

enum {
    HELD_FROM = 960, /* below the 1,024 that a process may mostly have open */
    HELD_END = 1024
};

/* In a template, after `fd` was opened for reading by code at `caller`: the descriptor to give to
 * it. That is another, if it is of the file that the code itself came from. Keeps errno. */
int held_apart(int fd, const void *caller);

/* Whether `fd` is one of them; whether there is any. */
int held_has(int fd);
int held_any(void);

#endif
