// The tools and tasks that the suite expects of a server with the tasks extension (SEP-2663).
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { inputRequired, MissingRequiredClientCapabilityError, ProtocolError } from '@modelcontextprotocol/server';
import { z } from 'zod';

const EXTENSION = 'io.modelcontextprotocol/tasks';
const CAPABILITIES = 'io.modelcontextprotocol/clientCapabilities';
export const taskCapability = { extensions: { [EXTENSION]: {} } };

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const form = (message, name, type) =>
  inputRequired.elicit({
    message,
    requestedSchema: { type: 'object', properties: { [name]: { type } }, required: [name] },
  });

const tasks = new Map();

/** Starts a task; `work` is given the task and a function that asks for input. */
function startTask(work) {
  const now = new Date().toISOString();
  const times = { createdAt: now, lastUpdatedAt: now, ttlMs: 60_000, pollIntervalMs: 500 };
  const task = { taskId: randomUUID(), state: { status: 'working' }, times, stopped: new AbortController() };
  tasks.set(task.taskId, task);
  const set = (state) => {
    if (task.stopped.signal.aborted) return;
    task.state = state;
    task.times = { ...task.times, lastUpdatedAt: new Date().toISOString() };
  };
  const ask = (inputRequests) => {
    const answered = Promise.withResolvers();
    const answers = {};
    set({ status: 'input_required', inputRequests });
    task.answer = (given) => {
      const left = Object.entries(task.state.inputRequests ?? {}).filter(([key]) => !Object.hasOwn(given, key));
      for (const key of Object.keys(inputRequests)) if (Object.hasOwn(given, key)) answers[key] = given[key];
      if (left.length > 0) return set({ status: 'input_required', inputRequests: Object.fromEntries(left) });
      set({ status: 'working' });
      answered.resolve(answers);
    };
    return answered.promise;
  };
  work(ask, task.stopped.signal).then(
    (result) => set({ status: 'completed', result }),
    (error) => set({ status: 'failed', error: { code: -32_603, message: error.message } }),
  );
  return { resultType: 'task', taskId: task.taskId, status: task.state.status, ...task.times };
}

/** By name, `(args, responses, hasTasks)`. Those in `onlyTasks` work in no other way. */
const tools = {
  greet: ({ name }) => text(`Hello, ${name}!`),
  slow_compute({ seconds, label }, responses, hasTasks) {
    const compute = async (ask, signal) => {
      await delay(seconds * 1_000, undefined, { signal, ref: false });
      return text(`computed ${label}`);
    };
    return hasTasks ? startTask(compute) : compute(null, undefined);
  },
  failing_job: () =>
    startTask(async () => {
      await delay(200);
      return { ...text('the job failed'), isError: true };
    }),
  protocol_error_job: () =>
    startTask(async () => {
      await delay(200);
      throw new Error('the job crashed');
    }),
  confirm_delete: ({ filename }) =>
    startTask(async (ask) => {
      const { confirm } = await ask({ confirm: form(`Delete ${filename}?`, 'confirm', 'boolean') });
      return text(`deleted: ${confirm.content?.confirm}`);
    }),
  multi_input: () =>
    startTask(async (ask) => {
      const answers = await ask({ first: form('First?', 'name', 'string'), second: form('Second?', 'name', 'string') });
      return text(Object.keys(answers).join());
    }),
  test_tool_with_task(args, { user_name: user }) {
    if (user === undefined)
      return inputRequired({ inputRequests: { user_name: form('Your name?', 'name', 'string') } });
    return startTask(async () => text(`Hello, ${user.content?.name}!`));
  },
};
const onlyTasks = new Set(Object.keys(tools).filter((name) => !['greet', 'slow_compute'].includes(name)));

export const taskTools = Object.keys(tools).map((name) => ({
  name,
  description: name,
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string' }, seconds: { type: 'number' }, label: { type: 'string' } },
  },
}));

const declares = ({ mcpReq }) => mcpReq.envelope?.[CAPABILITIES]?.extensions?.[EXTENSION] !== undefined;
function requireTasks(context) {
  if (!declares(context)) throw new MissingRequiredClientCapabilityError({ requiredCapabilities: taskCapability });
}

/** The answer of a tool of {@link taskTools}; undefined for every other name. */
export function callTaskTool({ params }, context) {
  const { name, arguments: args = {} } = params;
  if (!Object.hasOwn(tools, name)) return undefined;
  if (onlyTasks.has(name)) requireTasks(context);
  return tools[name](args, context.mcpReq.inputResponses ?? {}, declares(context));
}

/** Answers the methods of the extension. */
export function serveTasks(server) {
  const schemas = { params: z.object({ taskId: z.string() }) };
  const handle = (method, answer) =>
    server.setRequestHandler(method, schemas, ({ taskId }, context) => {
      requireTasks(context);
      const task = tasks.get(taskId);
      if (task === undefined) throw new ProtocolError(-32_602, `no task ${taskId}`);
      return answer(task, context);
    });
  handle('tasks/get', ({ taskId, state, times }) => ({ taskId, ...times, ...state }));
  handle('tasks/update', (task, { mcpReq }) => {
    task.answer?.(mcpReq.inputResponses ?? {});
    return {};
  });
  handle('tasks/cancel', (task) => {
    if (['completed', 'failed', 'cancelled'].includes(task.state.status)) return {};
    task.state = { status: 'cancelled' };
    task.stopped.abort();
    return {};
  });
}
