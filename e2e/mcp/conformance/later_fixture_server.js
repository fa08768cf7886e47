// The server that the protocol's conformance suite expects of the later generation (2026-07-28): what it needs of a client, it
// says in the result of a request, and continues with the client's next one.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  Server,
} from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { answers, tools } from './fixture_answers.js';
import { callTaskTool, serveTasks, taskCapability, taskTools } from './fixture_tasks.js';

const KEY = randomBytes(32);
const none = { type: 'object', properties: {} };
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
const text = (value) => ({ content: [{ type: 'text', text: value }] });

const sign = (value) => `${value}.${createHmac('sha256', KEY).update(value).digest('hex')}`;
function readState(state) {
  const value = String(state).split('.')[0];
  const [given, own] = [Buffer.from(String(state)), Buffer.from(sign(value))];
  if (given.length === own.length && timingSafeEqual(given, own)) return value;
  throw new ProtocolError(-32602, 'requestState was changed');
}

const form = (message, name, type = 'string') =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [name]: { type } }, required: [name] },
  });
const sample = (question) =>
  inputRequired.createMessage({
    messages: [{ role: 'user', content: { type: 'text', text: question } }],
    maxTokens: 100,
  });

/** The tools that need input: by name, `(responses, state, can)`; `state` is null in the first round, and `can` is what the client can do. */
const asking = {
  test_input_required_result_elicitation({ user_name: user }) {
    if (typeof user?.content?.name !== 'string')
      return inputRequired({ inputRequests: { user_name: form('What is your name?', 'name') } });
    return text(`Hello, ${user.content.name}!`);
  },
  test_input_required_result_sampling({ capital_question: answer }) {
    if (answer === undefined)
      return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?') } });
    return text(String(answer.content?.text));
  },
  test_input_required_result_list_roots({ client_roots: roots }) {
    if (roots === undefined) return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    return text(JSON.stringify(roots.roots));
  },
  test_input_required_result_request_state({ confirm }, state) {
    if (state === null)
      return inputRequired({
        inputRequests: { confirm: form('Please confirm', 'ok', 'boolean') },
        requestState: sign('asked'),
      });
    return text(confirm === undefined ? 'nothing' : 'state-ok');
  },
  test_input_required_result_multiple_inputs(responses, state) {
    const inputRequests = {
      user_name: form('What is your name?', 'name'),
      greeting: sample('Generate a greeting'),
      client_roots: inputRequired.listRoots(),
    };
    if (state === null) return inputRequired({ inputRequests, requestState: sign('asked') });
    return text(Object.keys(responses).join());
  },
  test_input_required_result_multi_round({ step1, step2 }, state) {
    if (state === null)
      return inputRequired({
        inputRequests: { step1: form('Step 1: What is your name?', 'name') },
        requestState: sign('one'),
      });
    if (state === 'one')
      return inputRequired({
        inputRequests: { step2: form('Step 2: What is your favorite color?', 'color') },
        requestState: sign(`two ${step1?.content?.name}`),
      });
    return text(`${state} ${step2?.content?.color}`);
  },
  test_input_required_result_tampered_state(responses, state) {
    if (state === null)
      return inputRequired({ inputRequests: { confirm: form('Go on?', 'ok', 'boolean') }, requestState: sign('x') });
    return text('done');
  },
  test_input_required_result_capabilities(responses, state, can) {
    const inputRequests = {
      ...(can.sampling !== undefined && { question: sample('What is the capital of France?') }),
      ...(can.elicitation !== undefined && { user_name: form('What is your name?', 'name') }),
    };
    return Object.keys(responses).length > 0 ? text('done') : inputRequired({ inputRequests });
  },
  test_streaming_elicitation({ user_name: user }) {
    if (user === undefined) return inputRequired({ inputRequests: { user_name: form('What is your name?', 'name') } });
    return text('done');
  },
  test_missing_capability(responses, state, can) {
    if (can.sampling === undefined)
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { sampling: {} } });
    return text('done');
  },
};

/** A tool and a prompt that come with the call of another tool. */
const added = { tools: [], prompts: [] };

const roundOf = ({ mcpReq }) => {
  const state = mcpReq.requestState();
  return [mcpReq.inputResponses ?? {}, state === undefined ? null : readState(state)];
};

function newServer() {
  const server = new Server(
    { name: 'fixture', version: '1' },
    {
      capabilities: {
        tools: { listChanged: true },
        resources: { listChanged: true },
        prompts: { listChanged: true },
        logging: {},
        completions: {},
        ...taskCapability,
      },
    },
  );
  for (const [method, answer] of answers) {
    server.setRequestHandler(method, (request, context) =>
      answer(request, { sendNotification: (notification) => context.mcpReq.notify(notification) }),
    );
  }
  serveTasks(server);
  server.setRequestHandler('tools/list', () => {
    const names = [
      ...Object.keys(asking),
      'test_logging_tool',
      'test_trigger_tool_change',
      'test_trigger_prompt_change',
    ];
    const more = [...names, ...added.tools].map((name) => ({ name, description: name, inputSchema: none }));
    return { tools: [...tools, ...taskTools, ...more] };
  });
  server.setRequestHandler('prompts/list', async () => {
    const { prompts } = await answers.get('prompts/list')();
    const more = ['test_input_required_result_prompt', ...added.prompts].map((name) => ({ name, description: name }));
    return { prompts: [...prompts, ...more] };
  });
  server.setRequestHandler('prompts/get', (request, context) => {
    if (request.params.name !== 'test_input_required_result_prompt') return answers.get('prompts/get')(request);
    const [{ user_context: user }] = roundOf(context);
    if (user === undefined)
      return inputRequired({
        inputRequests: { user_context: form('What context should the prompt use?', 'context') },
      });
    return { messages: [{ role: 'user', content: { type: 'text', text: String(user.content?.context) } }] };
  });
  server.setRequestHandler('tools/call', async (request, context) => {
    const { name } = request.params;
    const can = context.mcpReq.envelope?.[CAPABILITIES] ?? {};
    if (Object.hasOwn(asking, name)) return asking[name](...roundOf(context), can);
    const ofTasks = callTaskTool(request, context);
    if (ofTasks !== undefined) return ofTasks;
    if (added.tools.includes(name)) return text('done');
    const notify = (notification) => context.mcpReq.notify(notification);
    if (name === 'test_logging_tool') {
      await notify({ method: 'notifications/message', params: { level: 'info', data: 'called' } });
      return text('done');
    }
    if (name === 'test_trigger_tool_change') {
      added.tools.push(`added_${added.tools.length}`);
      await server.sendToolListChanged();
      return text('done');
    }
    if (name === 'test_trigger_prompt_change') {
      added.prompts.push(`added_${added.prompts.length}`);
      await server.sendPromptListChanged();
      return text('done');
    }
    return answers.get('tools/call')(request, { sendNotification: notify });
  });
  return server;
}

serveStdio(newServer);
