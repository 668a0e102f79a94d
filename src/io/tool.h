/* The commands of brigade-file. Each takes its words, prints JSON lines, and returns the exit
 * status. */
#ifndef BRG_IO_TOOL_H
#define BRG_IO_TOOL_H

#include "base/json.h"
#include "brigade/error.h"

int tool_verify(char **words);    /* PATH */
int tool_info(char **words);      /* PATH */
int tool_join(char **words);      /* FROM TO */
int tool_split(char **words);     /* FROM TO PARTS */
int tool_leftovers(char **words); /* FOLDER */
int tool_remove(char **words);    /* BASE, as leftovers names it */

/* A line of progress, now and then. Made to be a check_progress. */
void tool_progress(void *context, uint64_t done, uint64_t total);
/* The last line of what failed; 1. */
int tool_error(const struct brg_error *err);
void tool_add_string(struct json *j, const char *key, const char *text);
void tool_add_number(struct json *j, const char *key, uint64_t number);

/* The user wants it to end. */
int tool_stopped(void);

#endif
