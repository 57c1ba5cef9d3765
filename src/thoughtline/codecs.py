"""Reads the reasoning of one assistant message, and writes it to the next request. The code is in `library.codecs`."""

from __future__ import annotations

from thoughtline.library.codecs import EMPTY_DETAILS as EMPTY_DETAILS
from thoughtline.library.codecs import FormatReasoningCodec as FormatReasoningCodec
from thoughtline.library.codecs import OpenRouterReasoningCodec as OpenRouterReasoningCodec
from thoughtline.library.codecs import ReasoningCodec as ReasoningCodec
from thoughtline.library.codecs import Thought as Thought
from thoughtline.library.codecs import codec_for as codec_for
