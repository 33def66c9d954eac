"""A run told to people: Markdown, and one HTML file that holds everything it needs."""

from tailrace.latency.report.keep import keep_reports

__all__ = ["keep_reports"]
