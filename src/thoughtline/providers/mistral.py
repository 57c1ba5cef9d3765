"""Mistral: thinking chunks in the content. It refuses any other field."""

from msgspec.structs import replace

from thoughtline.providers.contract import Contract, Source
from thoughtline.providers.dialects import Dialect
from thoughtline.providers.knobs import Knob
from thoughtline.providers.refusals import Remedy, says
from thoughtline.providers.row import ModelRow, ProviderRow
from thoughtline.providers.sources import seen
from thoughtline.values.items import MISTRAL_V1

_PAGE = "https://docs.mistral.ai/studio-api/conversations/reasoning"

MISTRAL = Dialect(
    "mistral",
    "mistral_chunks",
    MISTRAL_V1,
    call_ids="counted",
    call_id_chars=9,
    source=seen(_PAGE, "2026-11-16", "an id of a call that is no nine letters and digits is a 422"),
)

_SAYS: tuple[tuple[Remedy, str], ...] = (
    ("strip_field", "{location}Extra inputs are not permitted"),
    ("drop_member", "{element_member}: Extra inputs are not permitted"),
)
_EXTRA, _EXTRA_MEMBER = (
    says(
        "forbidden",
        remedy,
        template,
        codes=frozenset({"extra_forbidden"}),
        statuses=(400, 422),
        source=seen("crush#1590, litellm#30835", "2026-11", "the reader of bodies writes `loc` before `msg`"),
    )
    for remedy, template in _SAYS
)

_ALWAYS = "magistral-(small|medium)"

_CHAT = Contract(
    "mistral",
    "advisory",
    MISTRAL,
    source=Source(_PAGE, "2026-11-16", "any other field is a 422; thinks at an effort of high, and at none else"),
    knobs=(
        Knob(
            _ALWAYS,
            "reasoning_effort",
            ("high",),
            can_be_off=False,
            source=seen(
                "recordings, hermes-agent#11243, models.dev#1986",
                "2026-11-16",
                "Magistral always thinks. Whether it takes an effort is reported either way: it is said where a client "
                "says one, and a refusal teaches better",
            ),
        ),
        Knob("", "reasoning_effort", ("high",)),
    ),
    answers=(_EXTRA,),
    refuses_other_fields=True,
)

ROW = ProviderRow(
    name="mistral",
    traced_as="mistral_ai",
    hosts=r"mistral\.ai$",
    models="magistral|mistral|ministral|codestral|devstral|pixtral",
    base_url="https://api.mistral.ai/v1",
    formats=("openai_chat",),
    rules="own",
    rows=(
        ModelRow(
            models=_ALWAYS,
            contracts=(replace(_CHAT, thinks_by_default=True),),
            source=seen("recordings", "2026-11-16", "Magistral always thinks"),
        ),
        ModelRow(contracts=(_CHAT,)),
    ),
    wants_back="never",
    source=seen("https://docs.mistral.ai", "2026-11", "its address and formats"),
    makes=(MISTRAL_V1,),
    refusals=(_EXTRA, _EXTRA_MEMBER),
    failures={"rate_limited": "busy", "service_tier_capacity_exceeded": "overloaded"},
)
