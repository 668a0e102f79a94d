/* The file of a trace: a sink that writes what docs/format.md, "The trace", says. */
#ifndef BRG_TRACE_FILE_H
#define BRG_TRACE_FILE_H

#include "trace/engine.h"

enum {
    TRACE_FILE_BUFFER = 256 << 10
};

struct trace_file {
    struct trace_sink sink; /* first: the sink is the file */
    const char *folder;     /* absolute, exists */
    int fd;                 /* -1: nothing can be written any more */
    uint64_t zero_ns;       /* CLOCK_MONOTONIC when the file began */
    uint64_t unread;        /* calls whose paths could not be read */
    uint64_t blind;         /* programs whose entry points nothing could wait at */
    size_t used;
    char buffer[TRACE_FILE_BUFFER];
};

/* A sink for one program, that writes into `folder`. Nothing is made before tracing begins. */
void trace_file_create(struct trace_file *file, const char *folder);

#endif
