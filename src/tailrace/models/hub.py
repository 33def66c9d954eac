"""Brings a repository of the Hugging Face Hub into a local folder; the only file that goes online.

What is already in the hub's own cache is used without asking the network. huggingface_hub is imported
where it is used, because most runs never need it.
"""

from pathlib import Path

from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import CONFIG, TOKENIZER, USUAL_FILES, ModelFolder, read_folder
from tailrace.models.port import Progress
from tailrace.models.source import HubSource

_PATIENCE_S = 10.0


def hub_folder(source: HubSource, progress: Progress) -> ModelFolder:
    """The repository's folder, out of the cache where it is complete, else downloaded."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError  # noqa: PLC0415

    try:
        cached = snapshot_download(source.repo, revision=source.revision, local_files_only=True)
        return read_folder(Path(cached), source.file)
    except (LocalEntryNotFoundError, ModelUnavailable):
        pass  # not here, or not all of it
    except HFValidationError as error:
        raise ModelUnavailable(f"{source}: {_one_line(error)}") from None
    try:
        return _download(source, progress)
    except ModelUnavailable:
        raise
    except Exception as error:  # noqa: BLE001 - errors of the hub's HTTP client are its own affair
        raise ModelUnavailable(
            f"{source} is not in the local cache and the hub could not be used ({_one_line(error)}); "
            "check the name and the network, or download it elsewhere and use dir:PATH"
        ) from None


def _download(source: HubSource, progress: Progress) -> ModelFolder:
    from huggingface_hub import HfApi, snapshot_download  # noqa: PLC0415

    progress(f"asking the hub for {source.repo}", 0.0)
    # One question that is not repeated, so that a machine without network learns it at once.
    found = HfApi().model_info(source.repo, revision=source.revision, timeout=_PATIENCE_S)
    names = {sibling.rfilename for sibling in found.siblings or []}
    file = source.file or next((name for name in USUAL_FILES if name in names), None)
    if file is None or file not in names:
        wanted = file or "ONNX file of a usual name"
        raise ModelUnavailable(f"{source} has no {wanted}; name one: hf:ORG/NAME:FILE")
    progress(f"downloading {source.repo}", 0.1)
    path = snapshot_download(
        source.repo,
        revision=source.revision,
        allow_patterns=[file, f"{file}_data", TOKENIZER, f"*/{TOKENIZER}", CONFIG],
    )
    return read_folder(Path(path), file)


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
