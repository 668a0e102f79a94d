/* Blocks, and the threads that write them and read ahead. */
#ifndef BRG_BUFFER_WORKER_H
#define BRG_BUFFER_WORKER_H

#include "buffer/file.h"

/* Memory for one buffer, or NULL beyond the bound (BRIGADE_BUFFER_MEMORY) or without memory. */
char *memory_take(uint64_t bytes);
void memory_give(char *at, uint64_t bytes);
void memory_limit(uint64_t bytes);

struct block *block_take(uint64_t room_bytes); /* room 0: a job to read; NULL as memory_take */
void block_give(struct block *b);

/* Hands a block of a locked file to the background; does it at once where no thread can start. */
void worker_push(struct block *b);

/* A block of the file has begun to be filled, or is not any more. */
void worker_opened(const struct file *f);
void worker_sealed(const struct file *f);

/* Our threads end when there is nothing to do, instead of waiting for more. */
void worker_end_soon(void);

/* No thread of ours runs when this returns; nothing may be pending. */
void worker_stop(void);
void worker_fork_begin(void);
void worker_fork_end(int in_child);

/* Of write.c and read.c: the job itself, without and with the file's lock. */
int block_write(struct block *b); /* 0 or -errno */
void block_written(struct block *b, int rc);
int64_t block_read(struct block *b); /* bytes or -errno */
void block_filled(struct block *b, int64_t rc);
void block_seal(struct file *f);

/* Whether fd is still open on that file. */
int file_is(const struct file *f, int fd);

#endif
