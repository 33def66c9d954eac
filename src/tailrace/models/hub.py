"""Brings a repository of the Hugging Face Hub into a local folder; the only file that goes online.

What is already in the hub's own cache is used without asking the network. huggingface_hub is imported
where it is used, because most runs never need it.
"""

from pathlib import Path

from tailrace.models.errors import ModelUnavailable
from tailrace.models.folder import CONFIG, TOKENIZER, USUAL_FILES, ModelFolder, read_folder
from tailrace.models.port import Progress
from tailrace.models.source import HubSource


def hub_folder(source: HubSource, progress: Progress) -> ModelFolder:
    """The repository's folder, out of the cache where it is complete, else downloaded."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError  # noqa: PLC0415
    from huggingface_hub.utils import HFValidationError  # noqa: PLC0415

    try:
        cached = snapshot_download(
            source.repo, revision=source.revision, local_files_only=True, token=False
        )
        return read_folder(Path(cached), source.file)
    except (LocalEntryNotFoundError, ModelUnavailable):
        pass  # not here, or not all of it
    except HFValidationError as error:
        raise ModelUnavailable(f"{source}: {_one_line(error)}") from None
    progress(f"asking the hub for {source.repo}", 0.0)
    try:
        file = source.file or _choose(source)
        progress(f"downloading {source.repo}", 0.1)
        path = snapshot_download(
            source.repo,
            revision=source.revision,
            allow_patterns=[file, f"{file}_data", TOKENIZER, f"*/{TOKENIZER}", CONFIG],
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelUnavailable(
            f"{source} is not in the local cache and the hub could not be used ({_one_line(error)}); "
            "check the name and the network, or download it elsewhere and use dir:PATH"
        ) from None
    return read_folder(Path(path), file)


def _choose(source: HubSource) -> str:
    """The ONNX file to take where the source names none: the smallest usual one first."""
    from huggingface_hub import HfApi  # noqa: PLC0415

    files = set(HfApi().list_repo_files(source.repo, revision=source.revision))
    for name in USUAL_FILES:
        if name in files:
            return name
    raise ModelUnavailable(f"{source} has no ONNX file we know; name one: hf:ORG/NAME:FILE")


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
