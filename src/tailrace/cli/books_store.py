"""What the verbs on a store of books share. Knows no model."""

from tailrace.apps.books.settings import BooksSettings
from tailrace.stores.errors import StoreUnavailable


def check_there(settings: BooksSettings) -> None:
    """Raises StoreUnavailable where the file of the settings is not there: opening would make it."""
    if settings.store.url is None and not settings.store.file().exists():
        raise StoreUnavailable(
            f"there is no store at {settings.store.file()}; fill one: tailrace books ingest FILE"
        )
