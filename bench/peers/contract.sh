# shellcheck shell=bash
# What every peer's scripts share; they source it. See README.md for the contract.
set -euo pipefail

here="$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)" # the peer's folder
peers="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
repository="$(cd "$peers/../.." && pwd)"
: "${PEER_HOME:?PEER_HOME must name a folder for the venv and the state of this peer}"
python="$PEER_HOME/venv/bin/python"
pid_file="$PEER_HOME/pid"
log_file="$PEER_HOME/log"
export HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1 DO_NOT_TRACK=1 PYTHONUNBUFFERED=1

# The same runtime under every hand-written peer, so that only the serving differs.
runtime=(onnxruntime==1.32.0 tokenizers==0.23.3 numpy)

make_venv() { # packages... : into a venv of the peer's own
    mkdir -p "$PEER_HOME"
    test -x "$python" || "${PYTHON:-python3}" -m venv "$PEER_HOME/venv"
    "$python" -m pip install -q --disable-pip-version-check "$@"
}

need_model() {
    : "${MODEL_DIR:?MODEL_DIR must name a folder with model.onnx and tokenizer.json}"
}

launch() { # command... : in the background, in a session of its own, on the cores given
    : "${PORT:?PORT must be a free port}"
    if test -f "$pid_file" && kill -0 "$(cat "$pid_file")" 2>/dev/null; then
        echo "already running as $(cat "$pid_file")" >&2
        exit 1
    fi
    cd "$PEER_HOME"
    local cores="${CORES:-$(taskset -pc $$ | sed 's/.*: //')}"
    PYTHONPATH="$peers${PYTHONPATH:+:$PYTHONPATH}" \
        setsid taskset -c "$cores" "$@" >"$log_file" 2>&1 </dev/null &
    echo $! >"$pid_file"
}

halt() { # SIGTERM to the pid that start wrote; SIGKILL to it after STOP_S seconds
    test -f "$pid_file" || return 0
    local pid tenths=$((${STOP_S:-30} * 10))
    pid="$(cat "$pid_file")"
    kill -TERM "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do
        if ((tenths-- <= 0)); then
            kill -KILL "$pid" 2>/dev/null || true
            break
        fi
        sleep 0.1
    done
    rm -f "$pid_file"
}

ask() { # one request from stdin
    "${PYTHON:-python3}" "$peers/../peer_ask.py" "$here"
}

answers() { # whether it embeds
    echo '{"texts": ["ready?"]}' | ask >/dev/null 2>&1
}
