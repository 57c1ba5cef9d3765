// A Next.js-style application over the AI SDK: a browser that keeps the messages, and a route that asks the model.
//
//     browser  DefaultChatTransport ─▶ POST /api/chat {id, messages: UIMessage[]} ─▶ route: streamText, tools, steps
//              readUIMessageStream  ◀─ UI message stream                          ◀─ toUIMessageStream
//
// Standard input has {packages, provider, baseURL, model, habit, questions, options}; standard output gets the answers,
// a line of JSON. `habit` is what becomes of the messages on the way to the browser and back:
//     keeps    all that the SDK gives
//     hides    the route sends no reasoning (`sendReasoning: false`)
//     forgets  the application stores what a user sees, and the calls: no reasoning, no provider's metadata

import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const { packages, provider, baseURL, model, habit, questions, options } = JSON.parse(await text(process.stdin));
const load = (name) => import(pathToFileURL(`${packages[name]}/dist/index.js`).href);
const ai = await load("ai");

const MODELS = {
  openai: async () => (await load("@ai-sdk/openai")).createOpenAI({ baseURL, apiKey: "key" })(model),
  anthropic: async () => (await load("@ai-sdk/anthropic")).createAnthropic({ baseURL, apiKey: "key" })(model),
  google: async () => (await load("@ai-sdk/google")).createGoogle({ baseURL, apiKey: "key" })(model),
  compatible: async () => {
    const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
    return createOpenAICompatible({ name: "compatible", baseURL, apiKey: "key" })(model);
  },
};
const languageModel = await MODELS[provider]();
const weather = ai.tool({
  description: "The weather of a city",
  inputSchema: ai.jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] }),
  execute: async () => "21 degrees",
});

// The route: `app/api/chat/route.ts`.
async function answer(body, response) {
  const { messages } = JSON.parse(body);
  const result = ai.streamText({
    model: languageModel,
    messages: await ai.convertToModelMessages(messages),
    tools: { weather },
    stopWhen: ai.isStepCount(8),
    maxRetries: 0,
    providerOptions: options,
  });
  const stream = ai.toUIMessageStream({
    stream: result.stream,
    sendReasoning: habit !== "hides",
    onError: (error) => `${error.responseBody ?? error}`,
  });
  ai.pipeUIMessageStreamToResponse({ response, stream });
}

const server = createServer(async (request, response) => answer(await text(request), response));
server.listen(0, "127.0.0.1");
await once(server, "listening");

// The browser: `useChat`, without React.
const transport = new ai.DefaultChatTransport({ api: `http://127.0.0.1:${server.address().port}/api/chat` });

function stored(message) {
  if (habit !== "forgets") return message;
  const parts = message.parts.filter((part) => part.type !== "reasoning");
  return { ...message, parts: parts.map(({ providerMetadata, callProviderMetadata, resultProviderMetadata, ...part }) => part) };
}

const messages = [];
const answers = [];
for (const question of questions) {
  messages.push({ id: `user-${messages.length}`, role: "user", parts: [{ type: "text", text: question }] });
  const stream = await transport.sendMessages({ chatId: "chat", messages, trigger: "submit-message", messageId: undefined });
  let last;
  for await (const message of ai.readUIMessageStream({ stream, terminateOnError: true })) last = message;
  messages.push(stored(last));
  answers.push(last.parts.filter((part) => part.type === "text").at(-1)?.text);
}
console.log(JSON.stringify(answers));
server.close();
