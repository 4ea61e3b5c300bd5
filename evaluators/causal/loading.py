"""A causal language model, its tokenizer and its adapter, loaded; and what can be known before they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from evaluators.causal.reading import Reading
from evaluators.causal.settings import CausalSettings
from evaluators.judge import Prompt

__all__ = ["adapter_at", "load_parts", "reading_of", "require_usable"]

_ADAPTER = "adapter_config.json"


def load_parts(settings: CausalSettings, device: str | None = None) -> tuple[Any, Any]:
    """The language model with its adapter, and the tokenizer.

    Args:
        settings: with places in full.
        device: of torch; default: the first accelerator, else the CPU.

    Raises:
        ValueError: if they cannot be loaded, or are no causal language model.
    """
    dtype = "auto" if settings.dtype == "auto" else getattr(torch, settings.dtype)
    try:
        config, tokenizer = _light_parts(settings)
    except Exception as error:
        raise _unusable(settings, error) from error
    _require_causal(config, settings.base)
    try:
        model: Any = AutoModelForCausalLM.from_pretrained(settings.base, revision=settings.revision, dtype=dtype)
    except Exception as error:
        raise _unusable(settings, error) from error
    if settings.adapter is not None:
        from evaluators.training.extra import require_extra

        require_extra(lora=True)
        from peft import PeftModel

        model = PeftModel.from_pretrained(model, str(adapter_at(settings.adapter)))
    chosen = device or ("cuda" if torch.cuda.is_available() else "cpu")
    return model.to(chosen).eval(), tokenizer


def reading_of(settings: CausalSettings, prompt: Prompt, config: Any, tokenizer: Any) -> Reading:
    """How prompts are read for a model: by the settings, and no longer than it has positions.

    Args:
        settings: of the reranker.
        prompt: its prompt.
        config: of the language model.
        tokenizer: of the language model.
    """
    positions = getattr(config, "max_position_embeddings", None)
    limits = [settings.max_length, *([positions] if isinstance(positions, int) and positions > 0 else [])]
    blank = "" if settings.chat else " "
    true, false = settings.true or f"{blank}true", settings.false or f"{blank}false"
    return Reading(tokenizer, prompt, true, false, settings.chat, min(limits))


def adapter_at(name: str) -> Path:
    """The directory of an adapter.

    Raises:
        FileNotFoundError: if there is none.
    """
    place = Path(name)
    if not (place / _ADAPTER).is_file():
        raise FileNotFoundError(f"there is no adapter of peft in {place}: {_ADAPTER} is missing")
    return place


def require_usable(settings: CausalSettings, prompt: Prompt) -> str | None:
    """Check all that can be checked without weights and without the hub.

    Args:
        settings: with places in full.
        prompt: the reranker's.

    Returns:
        What could not be checked, as a sentence; ``None`` if nothing was left out.

    Raises:
        FileNotFoundError: if the base or the adapter is not there.
        ValueError: if the base is no causal language model, an answer is not one token after the prompt, both are the
            same, there is no chat template where one is asked for, or the prompt leaves no room for a document.
    """
    if settings.adapter is not None:
        adapter_at(settings.adapter)
    place = Path(settings.base).expanduser()
    local = place.is_dir()
    if local:
        _require_model(place)
        if settings.revision is not None:
            raise ValueError(f"{place} is a directory, which has no revision {settings.revision!r}")
    elif settings.base.startswith((".", "/", "~")) or "\\" in settings.base:
        raise FileNotFoundError(f"{settings.base} is not a directory (a model is a directory or a hub name)")
    else:
        validate_repo_id(settings.base)
    try:
        config, tokenizer = _light_parts(settings, local_files_only=True)
    except Exception as error:
        if not local and isinstance(error, OSError):
            return (
                f"{settings.base} is not on this machine: whether there is such a model, and whether the answers are "
                "tokens of it, shows when it is run for the first time"
            )
        raise _unusable(settings, error) from error
    _require_causal(config, settings.base)
    reading_of(settings, prompt, config, tokenizer).require_room([("", "")])
    return None


def _light_parts(settings: CausalSettings, **where: Any) -> tuple[Any, Any]:
    """Configuration and tokenizer."""
    tokenizer: Any = AutoTokenizer.from_pretrained(settings.base, revision=settings.revision, **where)
    return AutoConfig.from_pretrained(settings.base, revision=settings.revision, **where), tokenizer


def _require_model(place: Path) -> None:
    if not (place / "config.json").is_file():
        hint = "; it holds an adapter: name its base, and this with --adapter" if (place / _ADAPTER).is_file() else ""
        raise FileNotFoundError(f"{place} holds no language model: config.json is missing{hint}")
    if not any(place.glob(pattern) for pattern in ("*.safetensors", "*.bin")):
        raise FileNotFoundError(f"{place} holds no weights of a language model (*.safetensors or *.bin)")


def _require_causal(config: Any, name: str) -> None:
    """Transformers would give other kinds of models a head with random weights.

    Raises:
        ValueError: if it is another kind.
    """
    kinds = getattr(config, "architectures", None) or []
    own_code = getattr(config, "auto_map", None)
    if kinds and not own_code and not set(kinds) & set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values()):
        raise ValueError(f"{name} is no causal language model but {', '.join(kinds)}")


def _unusable(settings: CausalSettings, error: Exception) -> ValueError:
    told = f"{type(error).__name__}: {error}"
    return ValueError(f"{settings.base} cannot be loaded as a causal language model ({told})")
