"""What ties the metrics to mteb: tasks, registration, data sources, checks, the command line."""

from evaluators.plugin.models import register_local_model, with_variant
from evaluators.plugin.registry import load_plugins
from evaluators.plugin.running import evaluate

__all__ = ["evaluate", "load_plugins", "register_local_model", "with_variant"]
