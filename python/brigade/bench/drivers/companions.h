/* What Brigade keeps of a file beside it: checksums, FILE.sums, and under hidden names,
 * .FILE.brg-..., the folder of a file in parts. */
#ifndef BENCH_COMPANIONS_H
#define BENCH_COMPANIONS_H

/* Calls act for each hidden one. */
void companions_each_hidden(const char *path, void (*act)(const char *path));

/* Removes a file, or a folder of files. */
void companions_remove_one(const char *path);

/* Removes a file and all its companions. */
void companions_remove(const char *path);

#endif
