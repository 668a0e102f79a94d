/* The forms of a report; see report.c. */
#ifndef IOR_REPORT_H
#define IOR_REPORT_H

#include "ior.h"

/* table.c */
void table_open(FILE *out, int argc, char **argv);
void table_test(FILE *out, const struct test *t);
void table_sample(FILE *out, const struct test *t, int way, const struct sample *s);
void table_removed(FILE *out, const struct test *t, int way, int repetition, double seconds);
void table_summary(FILE *out, const struct test *tests, int ntests);

/* events.c: JSON, an object a line; each line behind `mark`. */
void events_open(FILE *out, const char *mark, int argc, char **argv);
void events_test(FILE *out, const char *mark, const struct test *t);
void events_sample(FILE *out, const char *mark, const struct test *t, int way,
                   const struct sample *s);
void events_wrong(FILE *out, const char *mark, const struct test *t, int way, int repetition,
                  int rank, const char *text, const struct wrong *wrong);
void events_failed(FILE *out, const char *mark, const char *text, int rank);

#endif
