"""The diagnostics as pure functions of a base: ``(Base, settings) -> Case``."""
