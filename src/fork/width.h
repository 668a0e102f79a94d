/* How many ranks of the job a node has, as launchers tell. */
#ifndef BRG_FORK_WIDTH_H
#define BRG_FORK_WIDTH_H

/* From this process's environment; 0: nobody says. */
int fork_width(void);

/* The `node`-th number of a list as Slurm writes it: "4(x2),3" is 4, 4, 3. 0 if there is none. */
int fork_width_in(const char *list, int node);

#endif
