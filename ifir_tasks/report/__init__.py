"""Reports on IFIR results beside the paper's published values, and the error analysis."""

from ifir_tasks.report.command import add_report_command

__all__ = ["add_report_command"]
