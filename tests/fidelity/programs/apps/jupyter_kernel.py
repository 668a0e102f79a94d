"""Start a Jupyter kernel, run cells in it, and stop it, as a notebook server does."""

from jupyter_client.manager import start_new_kernel

CELLS = (
    "import sys, json, ipykernel; print(sys.executable, json.__file__, ipykernel.__version__)",
    "print(sys.path[1:], sorted(n for n in sys.modules if 'brigade' in n))",
    "sum(range(10))",
    "1/0",
    "import subprocess; print(subprocess.run([sys.executable, '-c', 'print(1)'],"
    " capture_output=True, text=True).stdout)",
)


def show(message):
    kind, content = message["msg_type"], message["content"]
    if kind == "stream":
        print(content["name"], content["text"], end="")
    elif kind == "execute_result":
        print("result", content["data"]["text/plain"])
    elif kind == "error":
        print(content["ename"], content["evalue"])


manager, client = start_new_kernel(kernel_name="python3", extra_arguments=["--log-level=ERROR"])
try:
    for cell in CELLS:
        print(client.execute_interactive(cell, output_hook=show, timeout=120)["content"]["status"])
finally:
    client.stop_channels()
    manager.shutdown_kernel(now=True)
