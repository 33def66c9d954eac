"""A slow model and a crowd: serve it honestly, measure every millisecond."""

__version__ = "0.1.0"
