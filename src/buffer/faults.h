/* Points at which tests make the file system fail, or slow: see base/fault.h. */
#ifndef BRG_BUFFER_FAULTS_H
#define BRG_BUFFER_FAULTS_H

#include <stddef.h>

void faults_start(void);

/* Before n bytes are written in the background: how many of them are to be, or -errno. */
long faults_write(size_t n);

/* Before the program's own read of the file, with nothing locked. */
void faults_read(void);

#endif
