/* Calls of a traced program as records of the trial. */
#ifndef BRG_VIEW_TRACE_RECORDS_H
#define BRG_VIEW_TRACE_RECORDS_H

#include "trace/engine.h"
#include "view/view.h"

/* Records a call that looked something up, or wrote; others leave nothing. */
void trace_record(const struct view *v, const struct trace_event *event);

#endif
