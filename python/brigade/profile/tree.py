"""Who loaded what: one node for each file that a rank loaded, and who asked for it.

A node's calls are those of the search that found it and of its reading. Calls of searches that
found nothing, and what a program does with files of other kinds, belong to no node: the nodes and
`unattributed` together make the rank's total.
"""

from __future__ import annotations

from brigade.profile.places import Places
from brigade.profile.profile import Node
from brigade.profile.ranks import Rank
from brigade.profile.story import Search, Story

_NS = 1e-9
_LOADED = ("library", "extension", "module")


def tree(rank: Rank, places: Places) -> list[Node]:
    """The nodes of one rank, loaders before what they load wherever that is known."""
    nodes: list[Node] = []
    roots: dict[int, int] = {}  # pid -> node of its latest image
    for story in rank.stories:
        root = _root(story, rank, roots)
        roots[story.process.pid] = len(nodes)
        nodes.append(root)
        _below(story, len(nodes) - 1, nodes, places)
    return nodes


def unattributed(rank: Rank, nodes: list[Node]) -> int:
    """Calls of the rank that belong to no node."""
    return sum(len(story.marks) for story in rank.stories) - sum(node.calls for node in nodes)


def _root(story: Story, rank: Rank, roots: dict[int, int]) -> Node:
    process = story.process
    loader = roots.get(process.pid, roots.get(process.parent, -1))
    own = next((search for search in story.searches if search.kind == "program"), None)
    name = process.exe.rpartition("/")[2] or (process.argv[0] if process.argv else "?")
    kind = "program" if story is rank.program else "process"
    node = Node(kind, name, process.exe, loader, "exec", True, 0, 0, 0.0)
    return _counted(node, story, own) if own else node


def _below(story: Story, root: int, nodes: list[Node], places: Places) -> None:
    """What one process loaded. Loaders are found by path, once all nodes are there."""
    at = {places.resolve(story.process.exe): root} if story.process.exe else {}
    own: list[tuple[int, Search]] = []
    for search in sorted(story.searches, key=lambda one: one.events[:1]):
        if search.kind in _LOADED and search.found:
            node = Node(
                *(search.kind, search.name, search.found, root, search.how, search.certain),
                *(0, 0, 0.0, search.import_us),
            )
            own.append((len(nodes), search))
            at.setdefault(places.resolve(search.found), len(nodes))
            nodes.append(_counted(node, story, search))
    for number, search in own:
        loader = at.get(places.resolve(search.asker), root) if search.asker else root
        nodes[number].loader = loader if loader != number else root


def _counted(node: Node, story: Story, search: Search) -> Node:
    for index in search.events:
        event = story.process.events[index]
        node.calls += 1
        node.wasted += bool(event.error and not event.by_fd)
        node.seconds += event.took_ns * _NS
    return node
