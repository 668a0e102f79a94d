/* The folders in which a launcher looks for the program of its ranks. */
#ifndef BRG_BASE_SEARCH_LAST_H
#define BRG_BASE_SEARCH_LAST_H

/* Of this process, a list as search.h has it: PATH, and after it the working directory where the
 * launcher looks there last, too. `last`: "word" if it then executes the program's word as it
 * stands (Slurm), "whole" if it makes a whole path of it (Open MPI), NULL if it does not look. NULL
 * if there is no PATH. What is returned is for the rest of the process. */
const char *search_last(const char *last);

#endif
