"""Lists of tokens with their log probabilities, in the shape that chat, Responses and Ollama share."""

from __future__ import annotations

import msgspec
from msgspec import Raw, Struct

from thoughtline.formats.json_text import encode, is_given
from thoughtline.values.notes import NO_NOTES, Notes, Token


class _Likely(Struct, gc=False):
    token: str
    logprob: float
    bytes: tuple[int, ...] | None = None


class _Token(_Likely, gc=False):
    top_logprobs: list[_Likely] | None = None


_decoder = msgspec.json.Decoder(list[_Token])


def decode_tokens(raw: Raw, others: str = "probabilities of tokens in a shape of their own") -> Notes:
    """The tokens of a list. One in another shape is a note that only its own host can read."""
    if not is_given(raw):
        return NO_NOTES
    try:
        return Notes(tokens=tuple(_typed(one) for one in _decoder.decode(raw)))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Notes(others=(others,))


def _typed(one: _Token) -> Token:
    top = tuple(Token(likely.token, likely.logprob, likely.bytes) for likely in one.top_logprobs or ())
    return Token(one.token, one.logprob, one.bytes, top)


def encode_tokens(tokens: tuple[Token, ...]) -> bytes:
    """A list with the bytes of every token, which are those of its text where nobody told them."""
    return encode([_shaped(one) | {"top_logprobs": [_shaped(likely) for likely in one.top]} for one in tokens])


def _shaped(token: Token) -> dict[str, object]:
    data = token.data if token.data is not None else tuple(token.text.encode())
    return {"token": token.text, "logprob": token.logprob, "bytes": data}
