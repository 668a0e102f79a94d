/* What brigade-audited found, as its exit status. */
#ifndef BRG_VIEW_AUDITED_H
#define BRG_VIEW_AUDITED_H

enum {
    AUDITED_CALLS = 1,     /* calls that are bound late stay slow */
    AUDITED_NAMESPACES = 2 /* dlmopen into a new namespace ends the process */
};

#endif
