"""Normalises an error's sentence to the words and quotes that `setting_sentences.py` reads.

Typographic quotes become plain ones, and the Chinese of Kimi, GLM, Qwen, Ark and relays becomes the few English words
that shapes consist of; everything else stays. A setting that is spelled in words (`prompt mode`) gets its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from thoughtline.formats.request_settings import FoundSetting

_MARKS = str.maketrans(
    {
        **dict.fromkeys("‘’‛′「」『』", "'"),  # noqa: RUF001 (these marks are what is looked for)
        **dict.fromkeys("“”„″«»", '"'),
        "，": ", ",  # noqa: RUF001 (these marks are what is looked for)
        "、": ", ",
        "。": ". ",
        "：": ": ",  # noqa: RUF001 (these marks are what is looked for)
        "；": "; ",  # noqa: RUF001 (these marks are what is looked for)
        "（": " (",  # noqa: RUF001 (these marks are what is looked for)
        "）": ") ",  # noqa: RUF001 (these marks are what is looked for)
        "【": " [",
        "】": "] ",
        "＝": "=",  # noqa: RUF001 (these marks are what is looked for)
        "～": "~",  # noqa: RUF001 (these marks are what is looked for)
    }
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_BESIDE_CHINESE = re.compile(r"(?<=[\u3400-\u9fff])(?=[!-~])|(?<=[!-~])(?=[\u3400-\u9fff])")
_WORDS = {
    "不能同时": "cannot both be",
    "不可同时": "cannot both be",
    "无法同时": "cannot both be",
    "不兼容": "is incompatible with",
    "互斥": "mutually exclusive",
    "不支持关闭": "does not support disabling",
    "无法关闭": "cannot disable",
    "不能关闭": "cannot disable",
    "不可关闭": "cannot disable",
    "关闭": "disable",
    "思考模式": "thinking mode",
    "深度思考": "thinking",
    "思考": "thinking",
    "推理强度": "reasoning effort",
    "推理": "reasoning",
    "非流式": "non-streaming",
    "不支持的": "unsupported",
    "不支持": "does not support",
    "仅支持": "only supports",
    "只支持": "only supports",
    "仅允许": "only supports",
    "只允许": "only supports",
    "只能为": "only supports",
    "只能是": "only supports",
    "必须设置为": "must be",
    "必须为": "must be",
    "必须是": "must be",
    "应为": "must be",
    "需为": "must be",
    "取值范围": "supported range",
    "可选值": "supported values",
    "可用值": "supported values",
    "有效值": "supported values",
    "允许值": "supported values",
    "支持的值": "supported values",
    "超出范围": "out of range",
    "已废弃": "is deprecated",
    "已弃用": "is deprecated",
    "不允许": "is not allowed",
    "不合法": "is invalid",
    "无效": "is invalid",
    "非法": "is invalid",
    "错误": "is invalid",
    "有误": "is invalid",
    "不正确": "is invalid",
    "不能大于": "must be at most",
    "不得大于": "must be at most",
    "不能超过": "must be at most",
    "不得超过": "must be at most",
    "不能小于": "must be at least",
    "不得小于": "must be at least",
    "请使用": "please use",
    "不可用": "is not available",
    "目前": "",
    "未知": "unknown",
    "参数": "parameter",
    "字段": "field",
    "模型": "model",
    "当前": "this",
    "该": "this",
    "与": "and",
    "和": "and",
    "或": "or",
    "到": "to",
    "至": "to",
    "为": "is",
    "是": "is",
}
_WORD = re.compile("|".join(sorted(_WORDS, key=len, reverse=True)))


def plain(sentence: str) -> str:
    """Return a sentence with plain quotes, and its Chinese as the words of shapes."""
    sentence = sentence.translate(_MARKS)
    if _CHINESE.search(sentence) is None:
        return sentence
    words = _WORD.sub(lambda match: f" {_WORDS[match[0]]} ", _BESIDE_CHINESE.sub(" ", sentence)).split()
    return " ".join(words)


_STEPS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_MAX_NAMED = 64


def with_names(sentence: str, found: Iterable[FoundSetting]) -> str:
    """Return the sentence with the request's settings by name where it spells them in words."""
    spelled: dict[tuple[str, ...], str] = {}
    for setting in list(found)[:_MAX_NAMED]:
        for path in (setting.path[-2:], setting.path[-1:]):
            words = [word.lower() for step in path for word in _STEPS.findall(step)]
            if len(words) > 1 and all(word.isalnum() for word in words):
                spelled.setdefault(tuple(words), ".".join(path))
    for spelling, name in sorted(spelled.items(), key=lambda one: -len(one[0])):
        pattern = re.compile(r"(?<![\w.`'\"-])" + r"(?: |: )".join(spelling) + r"\b", re.IGNORECASE)
        sentence = pattern.sub(name, sentence)
    return sentence
