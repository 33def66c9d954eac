"""The child's side of a local language model: an OpenAI-compatible server on loopback, until the parent goes.

Says its address in one line on standard output; ends when standard input does. Runs as a process of its own,
so that native code that crashes takes nobody along.
"""

import argparse
import os
import signal
import sys

NICE = 5
"""Behind the process that answers everybody else."""


def main(arguments: list[str]) -> None:
    """Serve one GGUF file."""
    import xllamacpp  # noqa: PLC0415 - an extra, needed here only

    parser = argparse.ArgumentParser()
    parser.add_argument("--file", required=True)
    parser.add_argument("--name", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--slots", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    options = parser.parse_args(arguments)
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)  # meant for the parent, whose end is ours
    os.nice(NICE)
    params = xllamacpp.CommonParams()
    params.model.path = options.file
    params.model_alias = {options.name}
    params.hostnames = ["127.0.0.1"]
    params.port = options.port
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = options.threads
    params.cpuparams_batch.n_threads = options.threads
    params.endpoint_slots = True
    params.ui = False
    params.verbosity = 0
    server = xllamacpp.Server(params)
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
