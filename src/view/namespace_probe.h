/* What this kernel allows the user of what the namespace view needs. Nothing is guessed from
 * versions: each thing is done once, by children, in mounts of their own. */
#ifndef BRG_VIEW_NAMESPACE_PROBE_H
#define BRG_VIEW_NAMESPACE_PROBE_H

/* Each is an errno, 0 if it worked, or -1 if it could not be tried. */
struct namespace_found {
    int user;      /* a user and mount namespace */
    int ids;       /* his own id in it */
    int all_ids;   /* all ids */
    int mounts;    /* a mount in it */
    int overlay;   /* an overlay of two folders */
    int userxattr; /* one that heeds attributes of users */
    int whiteouts; /* names that are absent although a lower folder has them */
    int opaque;    /* folders that hide what a lower one has */
    int bind;      /* a folder in another's place */
};

/* `folder`: an empty one, which is left as it is; NULL if there is none, and nothing is tried. */
void namespace_probe(struct namespace_found *found, const char *folder);

#endif
