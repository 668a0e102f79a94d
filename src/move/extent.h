/* What the ranks' requests are together: of each value that a request brings, the least of all
 * ranks' is agreed on, by whatever means. Pure. */
#ifndef BRG_IO_EXTENT_H
#define BRG_IO_EXTENT_H

#include "move/plan.h"
#include "move/request.h"

enum extent_value {
    EXTENT_LOW,
    EXTENT_HIGH,
    EXTENT_RUN,
    EXTENT_GRAIN,
    EXTENT_VALUES
};

void extent_say(const struct io_request *request, int64_t values[EXTENT_VALUES]);
struct io_extent extent_heard(const int64_t least[EXTENT_VALUES]);
/* What is read, where the file ends at `end`. */
void extent_cut(struct io_extent *extent, uint64_t end);

#endif
