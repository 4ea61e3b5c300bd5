"""Language models: one client, one store of replies, prompts as files, and judges of passages.

Everything in this project that asks a language model does it through :class:`LanguageModel`.
"""

from evaluators.judge.asking import Asking, PromptedAsking
from evaluators.judge.endpoint import Endpoint, EndpointError
from evaluators.judge.judges import FacetJudge, FunctionJudge, Judge, Judgement, Pair, as_judge
from evaluators.judge.language_model import LanguageModel, Outcome, Plan
from evaluators.judge.llm_judge import LLMJudge
from evaluators.judge.progress import Price
from evaluators.judge.prompt import Prompt, package_prompts, read_prompt
from evaluators.judge.reply import Reply
from evaluators.judge.request import Request, Sampling
from evaluators.judge.store import Store

__all__ = [
    "Asking",
    "Endpoint",
    "EndpointError",
    "FacetJudge",
    "FunctionJudge",
    "Judge",
    "Judgement",
    "LLMJudge",
    "LanguageModel",
    "Outcome",
    "Pair",
    "Plan",
    "Price",
    "Prompt",
    "PromptedAsking",
    "Reply",
    "Request",
    "Sampling",
    "Store",
    "as_judge",
    "package_prompts",
    "read_prompt",
]
