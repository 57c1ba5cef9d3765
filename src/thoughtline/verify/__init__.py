"""Facts proved with a user's own key: the smallest requests that tell what a provider does with a model's reasoning.

    dialogue   a conversation in the provider's format, and what a client might do to it: leave reasoning out, alter it
    asking     sends a request, reads the answer, keeps within a budget of tokens
    checks     what is believed of each request, and what is seen
    reporting  a table, the refusals in the provider's words, an overlay with what was seen

No word of a user goes up: the conversation is about the weather.
"""
