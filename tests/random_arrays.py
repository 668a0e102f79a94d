"""What ranks do that write random arrays in random blocks, and what they do that read them back.

Bodies of Python programs: they find comm, rank, size, PATH, SEEDS and `out`, a dictionary."""

# Each rank draws the same plan from the same seed: arrays, their cells, and whose each cell is.
PLAN = """
import random
TYPES = ["u1", "i2", "f4", "f8", "c16", "?"]

def cuts(draw, n):
    inside = draw.sample(range(1, n), draw.randint(0, min(2, n - 1))) if n else []
    return [0, *sorted(inside), n]

def cells_of(draw, shape):
    found = [[]]
    for n in shape:
        edges = cuts(draw, n)
        found = [cell + [edge] for cell in found for edge in zip(edges, edges[1:])]
    return found

def plan(seed):
    draw = random.Random(seed)
    hints = {"transport": draw.choice(["auto", "direct", "simple", "brigade", "rotate"]),
             "writers": draw.randint(1, 3), "segment": "64K", "share": draw.random() < 0.8,
             "async_": draw.random() < 0.2, "layout": draw.choice(["shared", "shared", "parts"])}
    if draw.random() < 0.4:  # as unless said: then few bytes of several nodes go by other ways
        hints = {"segment": draw.choice(["64K", "4M"]), "share": hints["share"]}
    arrays = []
    for i in range(draw.randint(1, 12)):
        shape = [draw.choice([0, 1, 2, 3, 5, 17, 40, 130]) for _ in range(draw.randint(0, 3))]
        if numpy.prod(shape) > 60_000:
            shape = shape[:2]
        dtype = draw.choice(TYPES)
        whole = numpy.random.default_rng(draw.randrange(1 << 30)).integers(0, 100, shape)
        cells = [(cell, draw.randrange(-1, 64)) for cell in cells_of(draw, shape)]
        arrays.append((f"g{i % 3}/a{i}", numpy.asarray(whole).astype(dtype), cells))
    return draw, hints, arrays
"""

WRITE = """
for seed in SEEDS:
    draw, hints, arrays = plan(seed)
    mine = random.Random(f"{seed} {rank}")  # each rank in an order of its own
    with brigade.io.open(comm, PATH + str(seed), "w", sync=False, **hints) as f:
        waiting = []
        for name, whole, cells in arrays:
            own = [cell for cell, who in cells if who >= 0 and who % size == rank]
            mine.shuffle(own)
            first = own.pop() if own and mine.random() < 0.6 else None
            blocks = [first, *own] if first is not None else [None, *own]
            for k, cell in enumerate(blocks):
                if cell is None:
                    call = (name, None, whole.shape, None, whole.dtype)
                else:
                    part = whole[tuple(slice(*edge) for edge in cell)]
                    part = part.copy(order=mine.choice("CF"))
                    call = (name, part, whole.shape, [edge[0] for edge in cell], None)
                if k == 0 or mine.random() < 0.5:
                    f.write_array(call[0], call[1], shape=call[2], start=call[3], dtype=call[4])
                else:
                    waiting.append(call)
            while waiting and mine.random() < 0.4:
                late = waiting.pop()
                f.write_array(late[0], late[1], shape=late[2], start=late[3])
        for late in waiting:
            f.write_array(late[0], late[1], shape=late[2], start=late[3])
"""

READ = """
out["wrong"] = []
for seed in SEEDS:
    draw, hints, arrays = plan(seed)
    mine = random.Random(f"{seed} {rank} reads")
    hints.pop("layout", None)
    with brigade.io.open(comm, PATH + str(seed), verify=True, **hints) as f:
        assert list(f) == [name for name, _, _ in arrays]
        for name, whole, cells in arrays:
            wanted = numpy.zeros_like(whole)
            for cell, who in cells:
                if who >= 0:
                    where = tuple(slice(*edge) for edge in cell)
                    wanted[where] = whole[where]
            for _ in range(mine.randint(0, 2)):
                start = [mine.randint(0, n) for n in whole.shape]
                count = [mine.randint(0, n - at) for n, at in zip(whole.shape, start)]
                got = f.read_array(name, start=start, count=count)
                part = wanted[tuple(slice(at, at + n) for at, n in zip(start, count))]
                if got.dtype != whole.dtype or not numpy.array_equal(got, part):
                    out["wrong"].append([seed, name])
            if not numpy.array_equal(f.read_array(name), wanted):
                out["wrong"].append([seed, name])
"""
