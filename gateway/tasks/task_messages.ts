import type { ClientCapabilities, Result } from '@modelcontextprotocol/server';
import { z } from 'zod';

/** The tasks extension of MCP (SEP-2663, for revision 2026-07-28): its name among the capabilities of both sides. */
export const TASKS_EXTENSION = 'io.modelcontextprotocol/tasks';

/** The capability as a client or a server declares it. */
export const TASKS_CAPABILITY = { extensions: { [TASKS_EXTENSION]: {} } } as const;

export function declaresTasks(capabilities: Pick<ClientCapabilities, 'extensions'> | undefined): boolean {
  return capabilities?.extensions?.[TASKS_EXTENSION] !== undefined;
}

const STATUSES = ['working', 'input_required', 'completed', 'failed', 'cancelled'] as const;

/** The base of every task. Times are ISO 8601. */
const taskFields = {
  status: z.enum(STATUSES),
  statusMessage: z.string().optional(),
  createdAt: z.string(),
  lastUpdatedAt: z.string(),
  /** How long the server keeps the task after its creation; null: without an end. */
  ttlMs: z.number().nonnegative().nullable(),
  pollIntervalMs: z.number().nonnegative().optional(),
};

const createdTask = z.object({ ...taskFields, taskId: z.string().min(1).max(1_024) });
/** What a server answers to a call in place of a result. */
export type CreatedTask = z.infer<typeof createdTask>;

const inputRequests = z.record(
  z.string(),
  z.looseObject({
    method: z.enum(['sampling/createMessage', 'elicitation/create', 'roots/list']),
    params: z.looseObject({}).optional(),
  }),
);
const taskError = z.object({ code: z.int(), message: z.string(), data: z.unknown().optional() });

/** A server's answer to `tasks/get`. Its id of the task is left out: no client sees it. */
export const detailedTask = z.discriminatedUnion('status', [
  z.object({ ...taskFields, status: z.literal('working') }),
  z.object({ ...taskFields, status: z.literal('input_required'), inputRequests }),
  z.object({ ...taskFields, status: z.literal('completed'), result: z.looseObject({}) }),
  z.object({ ...taskFields, status: z.literal('failed'), error: taskError }),
  z.object({ ...taskFields, status: z.literal('cancelled') }),
]);
export type DetailedTask = z.infer<typeof detailedTask>;

/** The answer to a call that has become a task. */
export interface TaskResult extends Result {
  readonly resultType: 'task';
  readonly taskId: string;
}

export function isTaskResult(result: object): result is TaskResult {
  return 'resultType' in result && result.resultType === 'task';
}

/** Where {@link receiveTasks} puts a task that a server has created. */
const CREATED_KEY = 'svc/created-task';

/** The SDK's client refuses a result of the type `task`, so the message becomes a result of a tool that has the task in its `_meta`. */
export function wrapCreatedTask<T extends object>(message: T): T {
  if (!('result' in message) || typeof message.result !== 'object' || message.result === null) return message;
  const { result } = message;
  if (!isTaskResult(result)) return message;
  return { ...message, result: { resultType: 'complete', content: [], _meta: { [CREATED_KEY]: result } } };
}

const wrapped = z.looseObject({ _meta: z.looseObject({ [CREATED_KEY]: z.unknown() }) });

/** The task of a result of {@link wrapCreatedTask}; `invalid` if its fields are not those of a task; null for every other result. */
export function unwrapCreatedTask(result: Result): CreatedTask | 'invalid' | null {
  const read = wrapped.safeParse(result);
  if (!read.success) return null;
  const { _meta: meta } = read.data;
  if (meta[CREATED_KEY] === undefined) return null;
  const task = createdTask.safeParse(meta[CREATED_KEY]);
  return task.success ? task.data : 'invalid';
}
