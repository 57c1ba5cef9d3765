"""`providerMetadata`: how the AI SDK carries seals, under the name of the provider that made them.

Names: vercel/ai's provider packages (`anthropic`, `bedrock`, `openai`, `azure`, `xai`, `google`) and OpenRouter's, read
2026-11; `amazonBedrock` and `vertex` are spellings that other clients write.
"""

from __future__ import annotations

from msgspec import Raw, Struct

from thoughtline.formats.json_text import array, encode, object_of
from thoughtline.formats.reasoning_details import encode_detail
from thoughtline.values.errors import EncodeError
from thoughtline.values.items import (
    ANTHROPIC_CLAUDE_V1,
    AZURE_OPENAI_RESPONSES_V1,
    GOOGLE_GEMINI_V1,
    OPENAI_RESPONSES_V1,
    XAI_RESPONSES_V1,
    Item,
    ReasoningEncrypted,
    ReasoningFormat,
    ReasoningSummary,
    ReasoningText,
    Seal,
)


class _Signed(Struct, gc=False, rename="camel"):
    signature: str | None = None
    redacted_data: str | None = None


class _Stored(Struct, gc=False, rename="camel"):
    item_id: str | None = None
    reasoning_encrypted_content: str | None = None


class _Sealed(Struct, gc=False, rename="camel"):
    thought_signature: str | None = None


class _Listed(Struct, gc=False):
    reasoning_details: list[Raw] | None = None


class Metadata(Struct, gc=False, rename="camel"):
    """What the makers that we know say of a part."""

    anthropic: _Signed | None = None
    bedrock: _Signed | None = None
    amazon_bedrock: _Signed | None = None
    openai: _Stored | None = None
    azure: _Stored | None = None
    xai: _Stored | None = None
    google: _Sealed | None = None
    vertex: _Sealed | None = None
    openrouter: _Listed | None = None

    def updated(self, later: Metadata | None) -> Metadata:
        """What two parts of one item say together; a later part replaces what an earlier one said."""
        if later is None:
            return self
        names = self.__struct_fields__
        return Metadata(*(getattr(later, name) or getattr(self, name) for name in names))

    @property
    def seal(self) -> Seal | None:
        """Gemini's signature, which may stand on any part."""
        found = self.google or self.vertex
        return Seal(found.thought_signature, GOOGLE_GEMINI_V1) if found and found.thought_signature else None

    @property
    def item_id(self) -> str | None:
        stored = self._stored
        return stored[0].item_id if stored else None

    @property
    def details(self) -> list[Raw]:
        return (self.openrouter.reasoning_details or []) if self.openrouter else []

    @property
    def _stored(self) -> tuple[_Stored, ReasoningFormat] | None:
        makers = (
            (self.openai, OPENAI_RESPONSES_V1),
            (self.azure, AZURE_OPENAI_RESPONSES_V1),
            (self.xai, XAI_RESPONSES_V1),
        )
        return next(((stored, made_by) for stored, made_by in makers if stored is not None), None)

    def reasoning(self, text: str, unnamed: ReasoningFormat) -> list[Item]:
        """The items that a reasoning part is: which kinds depends on who made it."""
        stored = self._stored
        if stored is not None:
            return _stored_items(text, *stored)
        signed = self.anthropic or self.bedrock or self.amazon_bedrock
        if signed is not None and signed.redacted_data:
            return [ReasoningEncrypted(signed.redacted_data, ANTHROPIC_CLAUDE_V1)]
        if signed is not None:
            return [ReasoningText(text, signed.signature, ANTHROPIC_CLAUDE_V1)]
        seal = self.seal
        if seal is not None:
            return [ReasoningText(text, seal.data, seal.format)]
        return [ReasoningText(text, None, unnamed)]

    def unsealed(self) -> Metadata:
        """The same makers, without any seal: what is left of a part that never ended."""
        signed = self.anthropic or self.bedrock or self.amazon_bedrock
        return Metadata(
            anthropic=_Signed() if signed else None,
            openai=_Stored() if self.openai else None,
            azure=_Stored() if self.azure else None,
            xai=_Stored() if self.xai else None,
        )


def _stored_items(text: str, stored: _Stored, made_by: ReasoningFormat) -> list[Item]:
    items: list[Item] = [ReasoningSummary(text, made_by, stored.item_id)]
    if stored.reasoning_encrypted_content:
        items.append(ReasoningEncrypted(stored.reasoning_encrypted_content, made_by, stored.item_id))
    return items


# --- writing ---------------------------------------------------------------------------------------------------------

_STORED_NAMES = {OPENAI_RESPONSES_V1: "openai", AZURE_OPENAI_RESPONSES_V1: "azure", XAI_RESPONSES_V1: "xai"}


def encode_seal(seal: Seal | None, item_id: str | None) -> bytes | None:
    """Metadata of text or of a call."""
    if seal is None:
        return encode({"openai": {"itemId": item_id}}) if item_id is not None else None
    if seal.format != GOOGLE_GEMINI_V1:
        raise EncodeError(f"a UI message part has no place for the seal of {seal.format}")
    return encode({"google": {"thoughtSignature": seal.data}})


def encode_text(item: ReasoningText) -> bytes | None:
    """Metadata of thinking in the clear."""
    if item.signature is None:
        return encode({"anthropic": {}}) if item.format == ANTHROPIC_CLAUDE_V1 else None
    if item.format == ANTHROPIC_CLAUDE_V1:
        return encode({"anthropic": {"signature": item.signature}})
    if item.format == GOOGLE_GEMINI_V1:
        return encode({"google": {"thoughtSignature": item.signature}})
    return encode_entry(item)


def encode_stored(made_by: ReasoningFormat, item_id: str | None, data: str | None) -> bytes | None:
    """Metadata of a summary, with the ciphertext that goes with it. None if its maker has no name here."""
    name = _STORED_NAMES.get(made_by)
    if name is None:
        return None
    sealed = {} if data is None else {"reasoningEncryptedContent": data}
    return encode({name: {"itemId": item_id, **sealed}})


def encode_encrypted(item: ReasoningEncrypted) -> bytes:
    """Metadata of ciphertext that no summary carries."""
    if item.format == ANTHROPIC_CLAUDE_V1:
        return encode({"anthropic": {"redactedData": item.data}})
    return encode_stored(item.format, item.id, item.data) or encode_entry(item)


def encode_entry(item: Item) -> bytes:
    """Any other maker's reasoning, as an entry of OpenRouter's, which names the maker."""
    return object_of([("openrouter", object_of([("reasoning_details", array([encode_detail(item)]))]))])
