/* Where brigade-rank begins, before its C library does. */
#ifndef BRG_VIEW_RANK_START_H
#define BRG_VIEW_RANK_START_H

/* Puts back what brigade_start, the entry of a static brigade-rank, has hidden. First in main. */
void rank_start_show(void);

#endif
