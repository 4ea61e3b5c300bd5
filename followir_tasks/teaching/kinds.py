"""The kinds of models that can be taught, as one interface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from followir_tasks.teaching.config import TeachingConfig
from followir_tasks.teaching.instances import Instance

if TYPE_CHECKING:
    from transformers import Trainer

__all__ = ["Teaching", "teaching_of"]


class Teaching(Protocol):
    """A kind of model as something to teach."""

    @property
    def tags(self) -> tuple[str, ...]:
        """Of the model's card."""
        ...

    def start(self) -> Any:
        """The base, ready to be trained."""
        ...

    def trainer(self, model: Any, instances: Sequence[Instance], arguments: dict[str, Any]) -> Trainer:
        """A trainer of the model; ``arguments`` are those of every kind of training."""
        ...

    def scored(self, model: Any) -> Any:
        """The model as ``mteb.evaluate`` takes it."""
        ...

    def save(self, model: Any, folder: Path) -> None:
        """Write the model as a directory that ``mteb-beyond run -m`` takes."""
        ...


def teaching_of(config: TeachingConfig) -> Teaching:
    """How the model of a configuration is taught."""
    if config.kind == "causal":
        from followir_tasks.teaching.causal import CausalTeaching

        return CausalTeaching(config)
    from followir_tasks.teaching.pairs import CrossEncoderTeaching, EncoderTeaching

    return EncoderTeaching(config) if config.kind == "encoder" else CrossEncoderTeaching(config)
