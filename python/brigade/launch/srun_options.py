"""srun's options: which have values, and what becomes of them in a step of Brigade's own.

From src/common/slurm_opt.c of Slurm 20.11 to 26.05. Tables alone.
"""

from __future__ import annotations

from brigade.launch.options import Getopt

_SHORT = {
    "A": "account", "b": "begin", "c": "cpus-per-task", "d": "dependency", "D": "chdir",
    "e": "error", "G": "gpus", "i": "input", "J": "job-name", "L": "licenses", "M": "clusters",
    "m": "distribution", "n": "ntasks", "N": "nodes", "o": "output", "p": "partition", "q": "qos",
    "r": "relative", "S": "core-spec", "T": "threads", "t": "time", "W": "wait", "C": "constraint",
    "w": "nodelist", "x": "exclude", "F": "nodefile", "B": "extra-node-info",
}  # fmt: skip
# Their value, if they have one, stands in the same word: -K1
_SHORT_OPTIONAL = {"I": "immediate", "K": "kill-on-bad-exit", "k": "no-kill"}
_SHORT_FLAGS = {
    "E": "preserve-env", "H": "hold", "l": "label", "O": "overcommit", "Q": "quiet",
    "s": "oversubscribe", "u": "unbuffered", "v": "verbose", "X": "disable-status",
    "Z": "no-allocate", "h": "help", "V": "version",
}  # fmt: skip
# Other names of the same option.
_SAME = {
    "cluster": "clusters", "cpu_bind": "cpu-bind", "pack-group": "het-group",
    "tasks-per-node": "ntasks-per-node",
}  # fmt: skip
_LONG_WITH_VALUE = frozenset(_SHORT.values()) | _SAME.keys() | {
    "accel-bind", "acctg-freq", "autocomplete", "bb", "bbf", "bcast-exclude", "cluster-constraint",
    "comment", "container", "container-id", "context", "cores-per-socket", "cpu-bind", "cpu-freq",
    "cpus-per-gpu", "deadline", "delay-boot", "environment", "epilog", "export", "export-file",
    "extra", "gid", "gpu-bind", "gpu-freq", "gpus-per-node", "gpus-per-socket", "gpus-per-task",
    "gres", "gres-flags", "het-group", "hint", "ignore-signals", "jobid", "mail-type", "mail-user",
    "mcs-label", "mem", "mem-bind", "mem-per-cpu", "mem-per-gpu", "mem-update", "mincpus", "mpi",
    "msg-timeout", "network", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node",
    "ntasks-per-socket", "ntasks-per-tres", "open-mode", "power", "prefer", "priority", "profile",
    "prolog", "reservation", "resources", "runtime", "segment", "signal", "slurmd-debug",
    "sockets-per-node", "switches", "task-epilog", "task-prolog", "thread-spec",
    "threads-per-core", "time-min", "tmp", "tree-width", "treewidth", "tres-bind", "tres-per-task",
    "uid", "wckey",
}  # fmt: skip
# Without a value, or with one in the same word: --bcast=/tmp/app
_LONG_FLAGS = frozenset(_SHORT_OPTIONAL.values()) | frozenset(_SHORT_FLAGS.values()) | {
    "async", "bcast", "compress", "consolidate-segments", "contiguous", "debugger-test", "exact",
    "exclusive", "external-launcher", "interactive", "multi-prog", "nice", "oom-kill-step",
    "overlap", "parsable", "propagate", "pty", "quit-on-interrupt", "reboot", "resv-ports",
    "send-libs", "spread-job", "spread-segments", "stepmgr", "test-only", "usage",
    "use-min-nodes", "wait-for-children", "whole", "x11",
}  # fmt: skip
OPTIONS = Getopt(_SHORT, _SHORT_OPTIONAL, _SHORT_FLAGS, _LONG_WITH_VALUE, _LONG_FLAGS, _SAME)

# What salloc understands too: the options that shape an allocation.
ALLOCATION = frozenset({
    "account", "acctg-freq", "bb", "bbf", "begin", "chdir", "cluster-constraint", "clusters",
    "comment", "consolidate-segments", "constraint", "container", "context", "contiguous",
    "core-spec", "cores-per-socket", "cpu-freq", "cpus-per-gpu", "cpus-per-task", "deadline",
    "delay-boot", "dependency", "distribution", "exclude", "exclusive", "extra", "extra-node-info",
    "gpu-bind", "gpu-freq", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gres",
    "gres-flags", "hint", "hold", "immediate", "job-name", "licenses", "mail-type", "mail-user",
    "mcs-label", "mem", "mem-per-cpu", "mem-per-gpu", "mincpus", "network", "nice", "no-kill",
    "nodefile", "nodelist", "nodes", "ntasks", "ntasks-per-core", "ntasks-per-gpu",
    "ntasks-per-node", "ntasks-per-socket", "ntasks-per-tres", "oom-kill-step", "overcommit",
    "oversubscribe", "partition", "power", "prefer", "priority", "profile", "qos", "reboot",
    "reservation", "resources", "resv-ports", "segment", "signal", "sockets-per-node",
    "spread-job", "spread-segments", "stepmgr", "switches", "thread-spec", "threads-per-core",
    "time", "time-min", "tmp", "tres-per-task", "use-min-nodes", "wckey",
})  # fmt: skip
# Left out of our own steps: shape and streams of the user's job, and what acts on its tasks.
SHAPE = frozenset({
    "ntasks", "nodes", "nodelist", "exclude", "nodefile", "relative", "distribution", "cpu-bind",
    "mem-bind", "ntasks-per-core", "ntasks-per-gpu", "ntasks-per-node", "ntasks-per-socket",
    "ntasks-per-tres", "gpus", "gpus-per-node", "gpus-per-socket", "gpus-per-task", "gpu-bind",
    "gres", "tres-bind", "tres-per-task", "extra-node-info", "cpus-per-task", "cores-per-socket",
    "sockets-per-node", "threads-per-core", "hint", "accel-bind", "output", "error", "input",
    "label", "pty", "multi-prog", "bcast", "bcast-exclude", "send-libs", "prolog", "epilog",
    "task-prolog", "task-epilog", "wait", "unbuffered", "exact", "exclusive", "spread-job",
    "verbose", "quit-on-interrupt", "contiguous", "use-min-nodes", "mincpus", "signal",
    "immediate", "dependency", "begin", "hold", "segment", "het-group",
})  # fmt: skip
# Ranks start in a container: Slurm's own, and those of plug-ins (Pyxis; Shifter's is --image).
CONTAINERS = frozenset({
    "container", "container-id", "container-image", "container-name", "image",
})  # fmt: skip
# Where the job's nodes are: kept by a step that has to be on the same ones.
PLACE = frozenset({"nodelist", "exclude", "nodefile", "relative"})
# Of another job, on other machines, or another user's.
ELSEWHERE = PLACE | {
    "clusters", "external-launcher", "gid", "het-group", "jobid", "no-allocate", "uid",
}  # fmt: skip
