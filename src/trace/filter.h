/* The seccomp filter of a traced program: only calls that a trace has stop it. */
#ifndef BRG_TRACE_FILTER_H
#define BRG_TRACE_FILTER_H

/* What a stop carries: a call of the trace, or one of another architecture's (i386, x32). */
enum {
    TRACE_FILTER_CALL = 0,
    TRACE_FILTER_FOREIGN = 1
};

/* Puts the filter on the calling thread and all that comes from it, for ever: from then on those
 * calls fail with ENOSYS unless a tracer is there. Without CAP_SYS_ADMIN it also gives up, for
 * ever, what set-uid programs would gain. 0 or -errno; on an error nothing but that has changed. */
int trace_filter_install(void);

#endif
