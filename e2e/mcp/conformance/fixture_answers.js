// What both servers answer that the protocol's conformance suite expects: tools, resources and prompts with fixed names and texts.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=';
/** By method: `(request, extra)`, where `extra` sends notifications, and requests of an earlier generation. */
export const answers = new Map();
// As text, because an object with a member of this name looks like a promise.
const CONDITION = JSON.parse(
  '{"if":{"properties":{"contactMethod":{"const":"phone"}}},"then":{"required":["phone"]},"else":{"required":["email"]}}',
);
const obj = { type: 'object', properties: {} };
export const tools = [
  'test_simple_text',
  'test_image_content',
  'test_audio_content',
  'test_embedded_resource',
  'test_multiple_content_types',
  'test_tool_with_logging',
  'test_tool_with_progress',
  'test_error_handling',
  'test_elicitation_sep1034_defaults',
  'test_elicitation_sep1330_enums',
  'test_reconnection',
].map((name) => ({ name, description: name, inputSchema: obj }));
tools.push({
  name: 'test_sampling',
  description: 's',
  inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
});
tools.push({
  name: 'test_elicitation',
  description: 'e',
  inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
});
tools.push({
  name: 'json_schema_2020_12_tool',
  description: 'Tool with JSON Schema 2020-12 features',
  inputSchema: {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    $defs: {
      address: {
        $anchor: 'address',
        type: 'object',
        properties: { street: { type: 'string' }, city: { type: 'string' } },
      },
    },
    properties: {
      name: { type: 'string' },
      address: { $ref: '#/$defs/address' },
      contactMethod: { type: 'string', enum: ['phone', 'email'] },
      phone: { type: 'string' },
      email: { type: 'string' },
    },
    allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
    ...CONDITION,
    additionalProperties: false,
  },
});
// A client repeats its argument in a header.
tools.push({
  name: 'test_custom_headers',
  description: 'h',
  inputSchema: { type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } } },
});
answers.set('tools/list', () => ({ tools }));
const text = (value) => ({ content: [{ type: 'text', text: value }] });
const wait = (ms) => new Promise((r) => setTimeout(r, ms));
const RES = { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' };
answers.set('tools/call', async ({ params }, extra) => {
  const { _meta: meta } = params;
  const progressToken = meta?.progressToken;
  switch (params.name) {
    case 'test_simple_text':
      return text('This is a simple text response for testing.');
    case 'test_image_content':
      return { content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] };
    case 'test_audio_content':
      return { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] };
    case 'test_embedded_resource':
      return { content: [{ type: 'resource', resource: RES }] };
    case 'test_multiple_content_types':
      return {
        content: [
          { type: 'text', text: 'Multiple content types test:' },
          { type: 'image', data: PNG, mimeType: 'image/png' },
          {
            type: 'resource',
            resource: {
              uri: 'test://mixed-content-resource',
              mimeType: 'application/json',
              text: '{"test":"data","value":123}',
            },
          },
        ],
      };
    case 'test_tool_with_logging':
      for (const d of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await extra.sendNotification({ method: 'notifications/message', params: { level: 'info', data: d } });
        await wait(50);
      }
      return text('done');
    case 'test_tool_with_progress':
      for (const p of [0, 50, 100]) {
        if (progressToken !== undefined)
          await extra.sendNotification({
            method: 'notifications/progress',
            params: { progressToken, progress: p, total: 100, message: `Completed step ${p} of 100` },
          });
        await wait(50);
      }
      return text(String(progressToken));
    case 'test_custom_headers':
      return text('done');
    case 'test_error_handling':
      return { isError: true, ...text('This tool intentionally returns an error for testing') };
    case 'test_reconnection':
      await wait(100);
      return text('Reconnection test completed successfully');
    case 'test_sampling': {
      const r = await extra.sendRequest(
        {
          method: 'sampling/createMessage',
          params: {
            messages: [{ role: 'user', content: { type: 'text', text: params.arguments.prompt } }],
            maxTokens: 100,
          },
        },
        'sampling',
      );
      return text(`LLM response: ${r.content.text}`);
    }
    case 'test_elicitation': {
      const r = await extra.sendRequest(
        {
          method: 'elicitation/create',
          params: {
            message: params.arguments.message,
            requestedSchema: {
              type: 'object',
              properties: {
                username: { type: 'string', description: "User's response" },
                email: { type: 'string', description: "User's email address" },
              },
              required: ['username', 'email'],
            },
          },
        },
        'elicitation',
      );
      return text(`User response: action=${r.action}, content=${JSON.stringify(r.content)}`);
    }
    case 'test_elicitation_sep1034_defaults': {
      const r = await extra.sendRequest(
        {
          method: 'elicitation/create',
          params: {
            message: 'd',
            requestedSchema: {
              type: 'object',
              properties: {
                name: { type: 'string', default: 'John Doe' },
                age: { type: 'integer', default: 30 },
                score: { type: 'number', default: 95.5 },
                status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
                verified: { type: 'boolean', default: true },
              },
              required: [],
            },
          },
        },
        'elicitation',
      );
      return text(`Elicitation completed: action=${r.action}, content=${JSON.stringify(r.content)}`);
    }
    case 'test_elicitation_sep1330_enums': {
      const r = await extra.sendRequest(
        {
          method: 'elicitation/create',
          params: {
            message: 'e',
            requestedSchema: {
              type: 'object',
              properties: {
                untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
                titledSingle: {
                  type: 'string',
                  oneOf: [
                    { const: 'value1', title: 'First Option' },
                    { const: 'value2', title: 'Second Option' },
                    { const: 'value3', title: 'Third Option' },
                  ],
                },
                legacyEnum: {
                  type: 'string',
                  enum: ['opt1', 'opt2', 'opt3'],
                  enumNames: ['Option One', 'Option Two', 'Option Three'],
                },
                untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
                titledMulti: {
                  type: 'array',
                  items: {
                    anyOf: [
                      { const: 'value1', title: 'First Choice' },
                      { const: 'value2', title: 'Second Choice' },
                      { const: 'value3', title: 'Third Choice' },
                    ],
                  },
                },
              },
              required: [],
            },
          },
        },
        'elicitation',
      );
      return text(`Elicitation completed: action=${r.action}, content=${JSON.stringify(r.content)}`);
    }
    case 'json_schema_2020_12_tool':
      return text('ok');
  }
  throw new Error('unknown');
});
answers.set('resources/list', () => ({
  resources: [
    { uri: 'test://static-text', name: 'text', description: 'x', mimeType: 'text/plain' },
    { uri: 'test://static-binary', name: 'bin', description: 'x', mimeType: 'image/png' },
    { uri: 'test://watched-resource', name: 'w', description: 'x', mimeType: 'text/plain' },
  ],
}));
answers.set('resources/templates/list', () => ({
  resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'tpl', mimeType: 'application/json' }],
}));
answers.set('resources/read', ({ params: { uri } }) => {
  if (uri === 'test://static-text')
    return { contents: [{ uri, mimeType: 'text/plain', text: 'This is the content of the static text resource.' }] };
  if (uri === 'test://static-binary') return { contents: [{ uri, mimeType: 'image/png', blob: PNG }] };
  const m = /template\/(.+)\/data/.exec(uri);
  if (m)
    return {
      contents: [
        {
          uri,
          mimeType: 'application/json',
          text: JSON.stringify({ id: m[1], templateTest: true, data: `Data for ID: ${m[1]}` }),
        },
      ],
    };
  return { contents: [{ uri, mimeType: 'text/plain', text: 'w' }] };
});
answers.set('completion/complete', () => ({ completion: { values: [], total: 0, hasMore: false } }));
answers.set('prompts/list', () => ({
  prompts: [
    { name: 'test_simple_prompt', description: 'x' },
    {
      name: 'test_prompt_with_arguments',
      description: 'x',
      arguments: [
        { name: 'arg1', required: true },
        { name: 'arg2', required: true },
      ],
    },
    {
      name: 'test_prompt_with_embedded_resource',
      description: 'x',
      arguments: [{ name: 'resourceUri', required: true }],
    },
    { name: 'test_prompt_with_image', description: 'x' },
  ],
}));
const message = (content) => ({ role: 'user', content });
answers.set('prompts/get', ({ params: { name, arguments: a = {} } }) => ({
  messages:
    name === 'test_simple_prompt'
      ? [message({ type: 'text', text: 'This is a simple prompt for testing.' })]
      : name === 'test_prompt_with_arguments'
        ? [message({ type: 'text', text: `Prompt with arguments: arg1='${a.arg1}', arg2='${a.arg2}'` })]
        : name === 'test_prompt_with_image'
          ? [
              message({ type: 'image', data: PNG, mimeType: 'image/png' }),
              message({ type: 'text', text: 'Please analyze the image above.' }),
            ]
          : [
              message({
                type: 'resource',
                resource: {
                  uri: a.resourceUri,
                  mimeType: 'text/plain',
                  text: 'Embedded resource content for testing.',
                },
              }),
              message({ type: 'text', text: 'Please process the embedded resource above.' }),
            ],
}));
