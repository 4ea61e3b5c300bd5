"""Building IFIR-style datasets: from any retrieval set to queries that carry reviewed instructions."""

from ifir_tasks.construction.command import add_build_command

__all__ = ["add_build_command"]
