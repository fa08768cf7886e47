/** What a text for a model has that a person should know of. */
export const TEXT_MARKS = [
  'hidden_characters',
  'terminal_escape',
  'hidden_markup',
  'overrides_instructions',
  'keeps_from_person',
  'claims_permission',
  'reads_secrets',
  'sends_data',
  'steers_other_tools',
  'lookalike_name',
  'encoded_blob',
  'long_text',
] as const;
export type TextMark = (typeof TEXT_MARKS)[number];

/** What of a server a person looks at before it is offered. */
export const REVIEWED_KINDS = ['tool', 'prompt', 'instructions'] as const;
export type ReviewedKind = (typeof REVIEWED_KINDS)[number];

/** `reviewed`: listed and callable. `waiting`: neither, until a person has looked at it. */
export const MCP_TOOL_STATES = ['reviewed', 'waiting'] as const;
export type McpToolState = (typeof MCP_TOOL_STATES)[number];

/** What a person can decide about one tool. */
export const TOOL_CHOICES = ['allow', 'ask', 'deny'] as const;
export type ToolChoice = (typeof TOOL_CHOICES)[number];

/** The longest definition that a person can be asked to look at, in characters. */
export const MAX_TOOL_TEXT = 128 * 1024;
/** The longest name of a tool. */
export const MAX_TOOL_NAME = 256;
/** How many tools of a server are kept in each state; more are not offered. */
export const MAX_TOOLS_OF_SERVER = 1_000;
/** How much text of a server's tools is accepted at first, and how much waits, in characters. Each look at them searches all of it. */
export const MAX_TOOLS_TEXT = 1024 * 1024;
/** The size of one report's tools as JSON. The control plane's default limit is 1 MiB. */
export const MAX_REPORT_BYTES = 700_000;
