"""PyTorch's CPU build: fit a small net, script it, and import every module that it has."""

import importlib
import pathlib
import sys
import warnings

import torch
from torch import nn

warnings.simplefilter("ignore")
torch.manual_seed(1)
torch.set_num_threads(1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(net.parameters(), 0.1)
x = torch.arange(32.0).reshape(8, 4) / 32
for _ in range(20):
    optimizer.zero_grad()
    loss = ((net(x).squeeze() - x.sum(1)) ** 2).mean()
    loss.backward()
    optimizer.step()
print(torch.__version__, torch.__file__, round(float(loss), 5), torch.jit.script(net)(x).shape)

# torch.distributed prints the time and a random name
LEFT_OUT = ("testing", "onnx", "tensorboard", "distributed", "__main__")
refused, sys.argv[1:] = [], []
top = pathlib.Path(torch.__file__).parent
for path in sorted(top.rglob("*.py")):
    parts = path.relative_to(top.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    if not any(part in name for part in LEFT_OUT):
        try:
            importlib.import_module(name)
        except (Exception, SystemExit) as error:
            refused.append(f"{name}: {type(error).__name__}: {error}")
print("\n".join(refused))
with open("/proc/self/maps") as maps:
    libraries = {line.split()[-1].rpartition("/")[2] for line in maps if ".so" in line}
libraries -= {"libbrigade-audit.so", "libbrigade-preload.so"}  # shown, as all that is mapped
count = len(sys.modules) + len(libraries)
print(len(sys.modules), len(libraries), "more than a thousand:", count > 1000)
