/* The ld.so auditor: answers where libraries are, or records what ld.so found.
 *
 * ld.so calls la_objsearch() first with the name as asked (LA_SER_ORIG), then with every candidate
 * path that its search makes. Serving, the first call is answered with the staged copy, which ends
 * the search; what the image does not know is searched by ld.so as ever, with candidates under
 * covered roots answered one by one. The object's name is put back to the original path in
 * la_objopen(), inside the same buffer, because ld.so will free it.
 *
 * ld.so takes $ORIGIN from the path it opened. A staged library is therefore opened under the path
 * by which it was asked for (its folder resolved, its own link kept), and candidates that lie in
 * the staged tree because of $ORIGIN are translated back.
 *
 * What must stay true: no libc, no TLS, no dependency (ld.so would search for it through the
 * program's RUNPATH, before the auditor exists); la_x86_64_gnu_pltenter and its relatives are
 * never exported (each call through the PLT would be traced for ever); la_objopen() returns 0, so
 * symbol bindings are not audited. ld.so holds its lock in every call, so buffers are static.
 */
#include "view/audit_ahead.h"
#include "view/audit_behind.h"
#include "view/audit_file.h"
#include "view/audit_loaded.h"
#include "view/audit_place.h"
#include "view/handoff.h"
#include "view/look.h"
#include "view/record.h"
#include "base/sys.h"
#include "base/text.h"

#include <errno.h>
#include <link.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT unsigned int la_version(unsigned int version);
EXPORT char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);
EXPORT unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie);
EXPORT void la_activity(uintptr_t *cookie, unsigned int flag);
EXPORT void la_preinit(uintptr_t *cookie);

static struct view view;

/* The last staged path that ld.so was given, whether it may still come of it that an object is
 * loaded, and the name that the object is to carry. */
static char given[PATH_MAX], shown[PATH_MAX];
static int given_now;
static uint32_t given_entry;

/* Recording: the search that ld.so is in, and the last candidate it was left to try. */
static struct {
    int active, relative; /* relative: the working directory had a say */
    char requester[PATH_MAX], name[PATH_MAX], candidate[PATH_MAX];
} search;

/* The requester as images spell it: the object's path, absolute; the executable's own. */
static const char *requester_path(const uintptr_t *cookie)
{
    static char absolute[PATH_MAX];
    const struct link_map *map = (const struct link_map *)*cookie;
    if (!map || !map->l_name || !map->l_name[0])
        return view.exe;
    if (view_absolute(&view, AT_FDCWD, map->l_name, absolute, sizeof absolute) != 0)
        return map->l_name;
    return absolute;
}

static int is_own(const char *name) /* a preloaded library */
{
    return text_starts(text_base(name), BRG_PRELOAD_MARK);
}

/* In the place of a preloaded library that is not to be there: this one, which needs no other. A
 * container may have an older C library than the preloaded ones need, and ld.so would end the
 * program; it would say that it finds nothing, too. */
static char *stand_in(const char *name)
{
    static char path[PATH_MAX];
    struct text t = text_in(path, sizeof path);
    text_bytes(&t, name, (size_t)(text_base(name) - name));
    text_add(&t, BRG_AUDIT_NAME);
    return t.full ? (char *)name : path;
}

/* ---- recording ---- */

static void copy(char *to, size_t size, const char *from)
{
    struct text t = text_in(to, size);
    text_add(&t, from);
}

/* ld.so has opened the last candidate, or tried to: one request, which no hook sees. */
static void end_candidate(int taken)
{
    char absolute[PATH_MAX];
    if (search.candidate[0] &&
        view_absolute(&view, AT_FDCWD, search.candidate, absolute, sizeof absolute) == 0)
        record_add(&view, "probe", taken ? 0 : ENOENT, search.requester, absolute, "");
    search.candidate[0] = '\0';
}

/* The search is over. `opened` is the object that came of it; NULL if none did: then ld.so found
 * one that it had loaded already, under the last candidate, or nothing. */
static void end_search(const char *opened)
{
    char absolute[PATH_MAX];
    if (!search.active)
        return;
    search.active = 0;
    if (!opened && search.candidate[0] && audit_is_loadable(search.candidate))
        opened = search.candidate;
    int taken = opened != NULL;
    if (opened && view_absolute(&view, AT_FDCWD, opened, absolute, sizeof absolute) == 0)
        opened = absolute;
    if (!search.relative) /* else it is no answer for another working directory */
        record_add(&view, "search", opened ? 0 : ENOENT, search.requester, search.name,
                   opened ? opened : "");
    end_candidate(taken);
}

static char *record_search(const char *name, const uintptr_t *cookie, unsigned int flag)
{
    if (is_own(name))
        return (char *)name;
    if (flag == LA_SER_ORIG) {
        end_search(NULL);
        copy(search.requester, sizeof search.requester, requester_path(cookie));
        copy(search.name, sizeof search.name, name);
        search.candidate[0] = '\0';
        search.active = 1;
        search.relative = 0;
        for (const char *c = name; *c; c++) /* a path is its own only candidate */
            if (*c == '/') {
                copy(search.candidate, sizeof search.candidate, name);
                break;
            }
    } else {
        end_candidate(0);
        copy(search.candidate, sizeof search.candidate, name);
        search.relative |= name[0] != '/';
    }
    return (char *)name;
}

static void record_load(const struct link_map *map)
{
    char absolute[PATH_MAX];
    if (!map->l_name || text_base(map->l_name) == map->l_name || is_own(map->l_name))
        return; /* the executable, the kernel's own object, or ours */
    /* the first object of a namespace is not searched for: no search before it found it */
    const char *last = search.candidate;
    int token = 0;
    for (const char *c = last; *c; c++)
        token |= *c == '$';
    end_search(token || text_same(last, map->l_name) ? map->l_name : NULL);
    if (view_absolute(&view, AT_FDCWD, map->l_name, absolute, sizeof absolute) == 0)
        record_add(&view, "load", 0, "", absolute, "");
}

/* ---- serving ---- */

/* What an absolute original path is to ld.so: the name of an object to load, a candidate of its
 * search, or what the image knows that ld.so has loaded. */
enum asked {
    ASKED_NAME,
    ASKED_CANDIDATE,
    ASKED_ANSWER
};

/* What ld.so is to open for it. NULL: it is known not to exist. A link that leads out of the image
 * is followed only for a candidate, which keeps its name and so $ORIGIN. */
static const char *serve_path(const char *path, enum asked asked)
{
    static struct look_result r;
    switch (look_up(&view, "load", AT_FDCWD, path, 1, &r)) {
    case LOOK_MISSING: look_hit(&view); return NULL;
    case LOOK_ELSEWHERE:
        if (asked == ASKED_CANDIDATE) {
            look_hit(&view);
            return r.path;
        }
        look_miss(&view, BRG_MISS_UNSUPPORTED, "load", AT_FDCWD, path);
        return path;
    case LOOK_HIT:
        if (r.entry->kind != BRG_FILE) {
            look_hit(&view);
            return path; /* ld.so says what is wrong with it */
        }
        if (!(r.entry->flags & BRG_HAS_CONTENT)) {
            look_miss(&view, BRG_MISS_NO_CONTENT, "load", AT_FDCWD, path);
            return path;
        }
        if (!audit_staged_place(&view, path, given, sizeof given) ||
            !(asked == ASKED_ANSWER ? audit_is_there(given) : audit_is_elf(given))) {
            /* ld.so's words about what is no ELF file are to name the path itself */
            int there = given[0] && audit_is_there(given);
            look_miss(&view, there ? BRG_MISS_UNSUPPORTED : BRG_MISS_STAGE, "load", AT_FDCWD, path);
            return path;
        }
        look_hit(&view);
        copy(shown, sizeof shown, path);
        given_now = 1;
        given_entry = (uint32_t)(r.entry - brg_entries(view.index));
        return given;
    case LOOK_PASS: break;
    }
    return path;
}

/* ld.so keeps a candidate's own spelling for the object's name, a relative one too. */
static char *serve_candidate(const char *name)
{
    static char absolute[PATH_MAX];
    const char *original = view_original(&view, name);
    if (view_absolute(&view, AT_FDCWD, original, absolute, sizeof absolute) != 0)
        return (char *)name;
    const char *answer = serve_path(absolute, ASKED_CANDIDATE);
    if (original != name && answer && answer != given)
        audit_make_folder(&view, name);
    if (!answer) /* NULL would leave ld.so with an old errno, which decides how it goes on */
        return audit_missing_place(&view, original);
    return (char *)(answer == absolute && original == name ? name : answer);
}

/* Replaces $ORIGIN at the start of a path that a library or the program opens: ld.so would put the
 * staged folder there. 0 if the path is to be left to ld.so. */
static int expand_origin(const char *name, const uintptr_t *cookie, char *to, size_t size)
{
    const char *rest = text_starts(name, "$ORIGIN/")     ? name + sizeof "$ORIGIN" - 1
                       : text_starts(name, "${ORIGIN}/") ? name + sizeof "${ORIGIN}" - 1
                                                         : NULL;
    const struct link_map *map = (const struct link_map *)*cookie;
    if (!rest || (map && map->l_name && map->l_name[0] && map->l_name[0] != '/'))
        return 0;
    for (const char *c = rest; *c; c++)
        if (*c == '$')
            return 0;
    const char *requester = requester_path(cookie);
    struct text t = text_in(to, size);
    text_bytes(&t, requester, (size_t)(text_base(requester) - requester) - 1);
    text_add(&t, rest);
    return requester[0] == '/' && !t.full;
}

/* A bare name: what the trial found for it. ld.so knows that it is there itself by its bare name
 * only: given a path, it would load a second ld.so into a new namespace. */
static char *serve_bare_name(const char *name, const uintptr_t *cookie)
{
    static char path[PATH_MAX];
    const struct brg_answer *a =
        text_starts(name, "ld-linux")
            ? NULL
            : brg_index_answer(view.index, view.context, requester_path(cookie), name);
    if (!a || !a->path.len)
        return (char *)name;
    copy(path, sizeof path, brg_string(view.index, a->path));
    const char *found = serve_path(path, ASKED_ANSWER);
    if (!found || (found == path && !audit_is_there(found)))
        return (char *)name; /* not on this node: search */
    if (found == given ? audit_was_loaded(given_entry)
                       : audit_has_file(text_base(path), (const struct link_map *)*cookie)) {
        given_now = 0; /* a search gives it this name too; a path for an answer would not */
        return (char *)name;
    }
    return (char *)found;
}

static char *serve_name(const char *asked, const uintptr_t *cookie)
{
    static char path[PATH_MAX], expanded[PATH_MAX];
    const char *name = asked;
    int has_slash = 0, has_token = 0;
    for (const char *c = name; *c; c++) {
        has_token |= *c == '$';
        has_slash |= *c == '/';
    }
    if (has_token) {
        if (!expand_origin(name, cookie, expanded, sizeof expanded))
            return (char *)name;
        name = expanded;
    }
    if (!has_slash)
        return serve_bare_name(name, cookie);
    const char *before = name[0] == '/' ? NULL : audit_alias(name, (struct link_map *)*cookie);
    if (before)
        copy(path, sizeof path, before);
    else if (view_absolute(&view, AT_FDCWD, view_original(&view, name), path, sizeof path) != 0)
        return (char *)asked;
    const struct brg_answer *known =
        brg_index_answer(view.index, view.context, requester_path(cookie), name);
    int loaded = known && text_same(brg_string(view.index, known->path), path);
    const char *found = serve_path(path, loaded ? ASKED_ANSWER : ASKED_NAME);
    int explained = view.preloaded && audit_is_in_base((const struct link_map *)*cookie);
    if (name[0] != '/' && found && (found != path || audit_is_there(path)))
        audit_note_alias(name, path);
    if (!found) /* of $ORIGIN ld.so makes a place in the staged tree, and shows what was asked */
        return explained && !has_token ? audit_missing_place(&view, name) : (char *)asked;
    if (found == path)
        return (char *)(has_token && sys_access(path, F_OK) == 0 ? name : asked);
    copy(shown, sizeof shown, name);
    return (char *)found;
}

/* Gives an object that was opened in the staged tree its original name. */
static void restore_name(struct link_map *map)
{
    char *name = map->l_name;
    if (!name || !name[0])
        return;
    const char *original = view_original(&view, name);
    if (text_starts(original, "/.brigade/"))
        return;
    if (given_now) {
        __atomic_fetch_add(&view.slot->loads, 1, __ATOMIC_RELAXED);
        audit_note_loaded(given_entry);
        audit_map_ahead(map);
    }
    if (given_now && text_same(name, given) && strlen(shown) <= strlen(name))
        memmove(name, shown, strlen(shown) + 1);
    else if (original != name)
        memmove(name, original, strlen(original) + 1);
    given_now = 0;
}

/* ---- the preloaded library ---- */

static void *dynamic_pointer(const struct link_map *map, ElfW(Sxword) tag)
{
    for (const ElfW(Dyn) *d = map->l_ld; d && d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag) /* ld.so may have relocated it already */
            return (void *)(d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr
                                                        : d->d_un.d_ptr);
    return NULL;
}

static void hand_over(const struct link_map *map)
{
    const uint32_t *hash = dynamic_pointer(map, DT_HASH);
    const ElfW(Sym) *symbols = dynamic_pointer(map, DT_SYMTAB);
    const char *strings = dynamic_pointer(map, DT_STRTAB);
    if (!hash || !symbols || !strings)
        return;
    for (uint32_t i = 0; i < hash[1]; i++)
        if (symbols[i].st_shndx != SHN_UNDEF &&
            text_same(strings + symbols[i].st_name, BRG_HANDOFF_SYMBOL))
            *(struct view **)(map->l_addr + symbols[i].st_value) = &view;
}

/* ---- what ld.so calls ---- */

unsigned int la_version(unsigned int version)
{
    view_start(&view);
    audit_behind(&view);
    return version;
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
    /* what dlmopen asks for has no requester: before glibc 2.35 the cookie is that of a map at 0 */
    int for_nobody = (uintptr_t)cookie < sizeof(struct link_map) + PATH_MAX;
    if (name && view.away && is_own(name))
        return stand_in(name);
    if (!name || view.mode == VIEW_OFF || view.away || for_nobody)
        return (char *)name;
    if (view.mode == VIEW_RECORD)
        return record_search(name, cookie, flag);
    given_now = 0;
    return flag == LA_SER_ORIG ? serve_name(name, cookie) : serve_candidate(name);
}

unsigned int la_objopen(struct link_map *map, Lmid_t lmid, uintptr_t *cookie)
{
    *cookie = (uintptr_t)map;
    if (lmid == LM_ID_BASE)
        audit_note_program(map);
    if (view.mode == VIEW_OFF)
        return 0;
    if (view.mode == VIEW_RECORD)
        record_load(map);
    else
        restore_name(map);
    if (lmid == LM_ID_BASE && map->l_name && is_own(map->l_name))
        hand_over(map);
    return 0;
}

void la_activity(uintptr_t *cookie, unsigned int flag)
{
    (void)cookie;
    if (flag == LA_ACT_CONSISTENT && view.mode == VIEW_RECORD)
        end_search(NULL);
}

/* Constructors have run, main is next. The C library calls this, in the program's namespace and
 * with no lock held, so what it calls there may use all of that library. */
void la_preinit(uintptr_t *cookie)
{
    (void)cookie;
    if (view.mode == VIEW_RECORD)
        record_event_of(&view, "", "main", "");
    else if (view.before_main)
        view.before_main(&view);
}

/* A process that ends while a search has found nothing: the search is still worth recording. */
__attribute__((destructor)) static void end_of_process(void)
{
    if (view.mode == VIEW_RECORD)
        end_search(NULL);
}
