"""Where the made results lie, what they hold, and a model's card to put them on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from huggingface_hub import ModelCard

from evaluators.cli import main
from evaluators.plugin.models import MINILM

PLACE = "results/sentence-transformers__all-MiniLM-L6-v2/8b3219a92973c328a8e22fadcfa821b5dc75636a"
BEFORE = """---
language: en   # spoken here
license: apache-2.0
model-index:
- name: all-MiniLM-L6-v2
  results:
  # somebody else's
  - task: {type: question-answering}
    dataset:
      type: squad
      name: SQuAD
    metrics:
    - type: f1   # kept
      value: 0.10
"""
OLDER = """  - task:
      type: text-retrieval
    dataset:
      type: old
      name: TCRSample (default)
      split: test
    metrics:
    - {type: recall_at_1, value: 0.999}
"""
AFTER = """# what follows are tags
tags: [ a,  b ]
---

# Model\x20\x20
Größe:\ttab, no newline at the end"""
CARD = BEFORE + OLDER + AFTER


def model_card(results: Path, *options: str) -> int:
    return main(["model-card", "--results", str(results), "--model", MINILM, *options])


def scores_of(results: Path, task: str, variant: bool = False) -> dict[str, Any]:
    (path,) = [p for p in results.rglob(f"{task}.json") if ("experiments" in p.parts) == variant]
    return dict(json.loads(path.read_text())["scores"]["test"][0])


def entries_of(card: Path, dataset: str) -> dict[str, Any]:
    entries = ModelCard.load(card).data.eval_results or []
    return {e.metric_type: e for e in entries if e.dataset_name == dataset}


def spoil(results: Path, task: str, **scores: Any) -> None:
    """Change scores of the plain model's result."""
    (path,) = [p for p in results.rglob(f"{task}.json") if "experiments" not in p.parts]
    saved = json.loads(path.read_text())
    saved["scores"]["test"][0] |= scores
    path.write_text(json.dumps(saved))
