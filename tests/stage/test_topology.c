/* Host lists and topology files are understood as Slurm writes them; what is wrong is named. */
#include "claim.h"
#include "stage/hostlist.h"
#include "stage/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void test_host_lists(void)
{
    static const struct {
        const char *list, *host;
        int has;
    } cases[] = {
        {"n1", "n1", 1},
        {"n1", "n10", 0},
        {"n10", "n1", 0},
        {"a,n1,b", "n1", 1},
        {"n[0-3]", "n0", 1},
        {"n[0-3]", "n3", 1},
        {"n[0-3]", "n4", 0},
        {"n[0-3]", "n03", 0},
        {"n[0-3]", "n", 0},
        {"n[1,5-7,12]", "n12", 1},
        {"n[1,5-7,12]", "n6", 1},
        {"n[1,5-7,12]", "n2", 0},
        {"n[1,5-7,12],m[2-3]", "m3", 1},
        {"n[8-12]", "n8", 1},
        {"n[8-12]", "n10", 1},
        {"n[001-100]", "n001", 1},
        {"n[001-100]", "n100", 1},
        {"n[001-100]", "n1", 0},
        {"n[001-100]", "n0001", 0},
        {"rack[1-2]n[0-9]-ib", "rack2n7-ib", 1},
        {"rack[1-2]n[0-9]-ib", "rack3n7-ib", 0},
        {"rack[1-2]n[0-9]-ib", "rack2n7", 0},
        {"n[1-2][0-9]", "n15", 1},
        {"n[1-2][0-9]", "n5", 0},
        {"n[99999999999999999-100000000000000000]", "n100000000000000000", 1},
        {"ALL", "anything", 1},
        {"", "n1", 0},
        {"n[1-2", "n1", 0},
        {"n[]", "n1", 0},
        {"n[-]", "n1", 0},
        {",,n1", "n1", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        CHECK(hostlist_has(cases[i].list, cases[i].host) == cases[i].has, "%s in %s", cases[i].host,
              cases[i].list);
}

static int read_from(const char *text, struct topology *t, struct brg_error *err)
{
    static char path[] = "topology-XXXXXX";
    strcpy(path, "topology-XXXXXX");
    int fd = mkstemp(path);
    if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        return -EIO;
    close(fd);
    int rc = topology_read(t, path, err);
    unlink(path);
    return rc;
}

static void check_address(const struct topology *t, const char *host, const char *wanted)
{
    char out[64] = "";
    struct brg_error err;
    int rc = topology_address(t, host, out, sizeof out, &err);
    CHECK(rc == 0 && strcmp(out, wanted) == 0, "%s: %d %s", host, rc, rc ? err.text : out);
}

static void test_a_tree(void)
{
    struct topology t;
    struct brg_error err;
    const char *text = "# the machine room\n"
                       "switchname=leaf0 nodes=n[0-3]  LinkSpeed=100 # first row\r\n"
                       "SwitchName=leaf1 Nodes=n[4-5],\\\n"
                       "  \n"
                       "SwitchName=leaf2 \\\n"
                       "   Nodes=m[1-2]\n"
                       "\n"
                       "   SwitchName=spine Switches=leaf[0-1]\n"
                       "BlockSizes=4\n"
                       "SwitchName=top Switches=spine,leaf2";
    int rc = read_from(text, &t, &err);
    CHECK(rc == 0, "%s", err.text);
    if (rc)
        return;
    check_address(&t, "n2", "top.spine.leaf0");
    check_address(&t, "n2.cluster.example", "top.spine.leaf0");
    check_address(&t, "n5", "top.spine.leaf1");
    check_address(&t, "m1", "top.leaf2");
    char out[64];
    CHECK(topology_address(&t, "n9", out, sizeof out, &err) == -ENOENT, "no switch has n9");
    CHECK(strstr(err.text, "n9") != NULL, "%s", err.text);
    CHECK(topology_address(&t, "n2", out, 12, &err) == -ENAMETOOLONG, "12 bytes are too few");
    topology_free(&t);
}

static void test_what_is_wrong_is_named(void)
{
    struct topology t;
    struct brg_error err;
    char out[64];
    CHECK(read_from("SwitchName=a Nodes=n1\n\nNodes=n2\n", &t, &err) == -EINVAL, "no name");
    CHECK(strstr(err.text, "line 3 ") != NULL, "%s", err.text);
    CHECK(read_from("SwitchName=a \\\n Nodes=n1\nwhat is this\n", &t, &err) == -EINVAL, "no key");
    CHECK(strstr(err.text, "line 3 ") != NULL, "%s", err.text);
    CHECK(read_from("# nothing\n", &t, &err) == -EINVAL, "empty");
    CHECK(topology_read(&t, "/no/such/file", &err) == -ENOENT, "not there");
    CHECK(strstr(err.text, "/no/such/file") != NULL, "%s", err.text);
    CHECK(topology_read(&t, "/", &err) == -EINVAL, "a folder");
    CHECK(read_from("SwitchName=a Nodes=n1 Switches=b\nSwitchName=b Switches=a\n", &t, &err) == 0,
          "%s", err.text);
    CHECK(topology_address(&t, "n1", out, sizeof out, &err) == -ELOOP, "in a circle");
    topology_free(&t);
}

int main(void)
{
    test_host_lists();
    test_a_tree();
    test_what_is_wrong_is_named();
    printf("%d failures\n", failures);
    return failures != 0;
}
