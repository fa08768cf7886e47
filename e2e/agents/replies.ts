/** Answers of model services, a short text or a call of a tool, in the streams of their public APIs. */

/** A call of one of the tools that the request offered. */
export interface ModelToolCall {
  readonly id: string;
  readonly name: string;
  /** What the Responses API groups the tools of a server by. */
  readonly namespace?: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export type ModelReply = string | ModelToolCall;

/** A server-sent event: its name and data (JSON, or plain text). */
export type StreamEvent = readonly [name: string | null, data: unknown];

function toStreamEvents(
  events: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[],
): StreamEvent[] {
  return events.map((event, at) => [event.type, { sequence_number: at, ...event }]);
}

/** Anthropic Messages API. */
export function anthropicEvents(reply: ModelReply): readonly StreamEvent[] {
  const usage = { input_tokens: 3, output_tokens: 1 };
  const stop = { stop_reason: null, stop_sequence: null };
  const isText = typeof reply === 'string';
  const id = isText ? 'msg_1' : `msg_${reply.id}`;
  const message = { id, type: 'message', role: 'assistant', model: 'claude', content: [], ...stop, usage };
  const [block, delta] = isText
    ? [
        { type: 'text', text: '' },
        { type: 'text_delta', text: reply },
      ]
    : [
        { type: 'tool_use', id: reply.id, name: reply.name, input: {} },
        { type: 'input_json_delta', partial_json: JSON.stringify(reply.args) },
      ];
  return toStreamEvents([
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta },
    { type: 'content_block_stop', index: 0 },
    {
      type: 'message_delta',
      delta: { ...stop, stop_reason: isText ? 'end_turn' : 'tool_use' },
      usage: { output_tokens: 4 },
    },
    { type: 'message_stop' },
  ]);
}

/** OpenAI Responses API, also over its WebSocket. */
export function responsesEvents(reply: ModelReply): readonly StreamEvent[] {
  const at = { output_index: 0 };
  const { item, started, changes } = typeof reply === 'string' ? textItem(reply) : callItem(reply);
  const id = typeof reply === 'string' ? 'resp_1' : `resp_${reply.id}`;
  const response = { id, object: 'response', created_at: 1, model: 'gpt', status: 'in_progress', output: [] };
  const details = { input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } };
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2, ...details };
  return toStreamEvents([
    { type: 'response.created', response },
    { type: 'response.output_item.added', ...at, item: { ...started, status: 'in_progress' } },
    ...changes.map((change) => ({ ...at, item_id: item.id, ...change })),
    { type: 'response.output_item.done', ...at, item },
    { type: 'response.completed', response: { ...response, status: 'completed', output: [item], usage } },
  ]);
}

/** An item of the Responses API: whole, as it is started, and the events between. */
interface ResponsesItem {
  readonly item: { readonly id: string };
  readonly started: object;
  readonly changes: readonly (Readonly<Record<string, unknown>> & { readonly type: string })[];
}

function textItem(text: string): ResponsesItem {
  const part = { type: 'output_text', text, annotations: [] };
  const item = { id: 'item_1', type: 'message', role: 'assistant', status: 'completed', content: [part] };
  const within = { content_index: 0 };
  return {
    item,
    started: item,
    changes: [
      { type: 'response.content_part.added', ...within, part: { ...part, text: '' } },
      { type: 'response.output_text.delta', ...within, delta: text },
    ],
  };
}

function callItem({ id, name, namespace, args }: ModelToolCall): ResponsesItem {
  const called = { id: `item_${id}`, type: 'function_call', call_id: id, name, ...(namespace && { namespace }) };
  const item = { ...called, status: 'completed', arguments: JSON.stringify(args) };
  return {
    item,
    started: { ...called, arguments: '' },
    changes: [
      { type: 'response.function_call_arguments.delta', delta: item.arguments },
      { type: 'response.function_call_arguments.done', arguments: item.arguments },
    ],
  };
}

function chatChunk(delta: object, finish: string | null): object {
  return {
    id: 'chat_1',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'model',
    choices: [{ index: 0, delta, finish_reason: finish }],
  };
}

/** Chat Completions, which several services speak. */
export function chatEvents(reply: ModelReply): readonly StreamEvent[] {
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  const delta = typeof reply === 'string' ? { content: reply } : { content: null, tool_calls: [chatCall(reply)] };
  return [
    [null, chatChunk({ role: 'assistant', ...delta }, null)],
    [null, { ...chatChunk({}, typeof reply === 'string' ? 'stop' : 'tool_calls'), usage }],
    [null, '[DONE]'],
  ];
}

function chatCall({ id, name, args }: ModelToolCall): object {
  return { index: 0, id, type: 'function', function: { name, arguments: JSON.stringify(args) } };
}

function geminiReply(reply: ModelReply): object {
  const part = typeof reply === 'string' ? { text: reply } : { functionCall: { name: reply.name, args: reply.args } };
  return {
    candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: 'gemini',
  };
}

/** Gemini API, streamGenerateContent. */
export function geminiEvents(reply: ModelReply): readonly StreamEvent[] {
  return [[null, geminiReply(reply)]];
}

/** The Gemini CLI asks a small model first which model to use. */
export const GEMINI_ROUTE = geminiReply(
  JSON.stringify({ complexity_reasoning: 'short', complexity_score: 1, reasoning: 'short', model_choice: 'flash' }),
);

/** GitHub's answer about a Copilot account: its plan and its API's URL. */
export const COPILOT_USER = {
  login: 'dev',
  copilot_plan: 'individual',
  chat_enabled: true,
  cli_enabled: true,
  is_mcp_enabled: true,
  endpoints: {
    api: 'https://api.individual.githubcopilot.com',
    telemetry: 'https://telemetry.individual.githubcopilot.com',
  },
};

/** The model that the test requests from Copilot. */
export const COPILOT_MODEL = 'claude-sonnet-4.6';

export const COPILOT_MODELS = {
  object: 'list',
  data: [
    {
      id: COPILOT_MODEL,
      name: COPILOT_MODEL,
      object: 'model',
      version: COPILOT_MODEL,
      vendor: 'Anthropic',
      model_picker_enabled: true,
      policy: { state: 'enabled', terms: '' },
      preview: false,
      is_chat_default: true,
      is_chat_fallback: true,
      billing: { is_premium: false, multiplier: 0 },
      capabilities: {
        type: 'chat',
        family: COPILOT_MODEL,
        object: 'model_capabilities',
        tokenizer: 'o200k_base',
        limits: { max_context_window_tokens: 128_000, max_output_tokens: 16_384, max_prompt_tokens: 111_424 },
        supports: { streaming: true, tool_calls: true, parallel_tool_calls: true },
      },
      supported_endpoints: ['/chat/completions'],
    },
  ],
};

/** The account of the ChatGPT login in the tests. */
export const CHATGPT_ACCOUNT = 'acc-of-a-test';

/** ChatGPT's answer about the accounts of a login: Codex asks for its model's URL. */
export const CHATGPT_ACCOUNTS = {
  accounts: [
    {
      id: CHATGPT_ACCOUNT,
      name: 'Test',
      structure: 'personal',
      plan_type: 'pro',
      is_deactivated: false,
      can_access_with_session: true,
      sso_connection_name: null,
      profile_picture_url: null,
      is_fedramp_compliant_workspace: false,
      workspace_backend_origin: 'https://chatgpt.com',
      account_routing_override: 'NO_CONSTRAINT',
    },
  ],
  account_ordering: [CHATGPT_ACCOUNT],
  default_account_id: CHATGPT_ACCOUNT,
};
