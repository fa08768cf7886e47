import type { Tool } from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import { localServer } from '../../shared/mcp/testing/servers.ts';
import { ok } from '../../shared/model/result.ts';
import type { ClientRequest } from '../fronts/gateway_client.ts';
import { DEFAULT_GATEWAY_LIMITS } from '../gateway_limits.ts';
import { SecretMask } from '../servers/secret_mask.ts';
import type { SupervisedServer } from '../servers/supervised_server.ts';
import { TASKS_CAPABILITY, wrapCreatedTask } from '../tasks/task_messages.ts';
import type { StartedTask } from '../tasks/task_table.ts';
import { CallRegistry, HeldCalls } from './call_registry.ts';
import { Forwarder } from './forwarder.ts';

const TOOL: Tool = { name: 'compute', inputSchema: { type: 'object' } };
const AT = '2026-07-28T00:00:00Z';
const CREATED = { taskId: 'a', status: 'working', createdAt: AT, lastUpdatedAt: AT, ttlMs: null };
const DONE = { content: [{ type: 'text', text: 'done' }] };
const TASK = wrapCreatedTask({ result: { resultType: 'task', ...CREATED } }).result;

interface World {
  readonly era?: 'modern' | 'legacy';
  readonly server?: object;
  readonly hasTasks?: boolean;
  readonly isFull?: boolean;
  /** Whether the slot is still there when the server answers. */
  readonly mayBecome?: boolean;
  readonly answer?: object;
}

/** Runs a call in a world, and says what the server heard and what became of the call. */
async function call(world: World) {
  const { era = 'modern', server = TASKS_CAPABILITY, hasTasks = true, isFull = false } = world;
  const { mayBecome = true, answer = TASK } = world;
  const heard: unknown[] = [];
  const ends: string[] = [];
  const kept: StartedTask[] = [];
  const refused: unknown[] = [];
  const send = (params: unknown) => {
    heard.push(params);
    return Promise.resolve(answer);
  };
  const client = {
    getProtocolEra: () => era,
    getServerCapabilities: () => server,
    callTool: send,
    request: ({ params }: { readonly params: unknown }) => send(params),
  };
  const downstream = { client, mask: new SecretMask([]), closed: new Promise(() => undefined) };
  const supervised = z.custom<SupervisedServer>().parse({
    server: localServer(),
    current: downstream,
    connectPatiently: () => Promise.resolve(ok(downstream)),
  });
  const forwarder = new Forwarder({
    limits: DEFAULT_GATEWAY_LIMITS,
    registry: new CallRegistry(),
    held: new HeldCalls(1_000),
    tasks: {
      isFull: () => isFull,
      refuse: ({ created }) => void refused.push(created.taskId),
      keep: (started) => {
        kept.push(started);
        return { resultType: 'task', taskId: 'of-the-gateway' };
      },
    },
  });
  const request: ClientRequest = {
    client: { key: null, caller: HOST_CALLER, logLevel: () => null },
    round: { notify: () => Promise.resolve(), progressToken: undefined, signal: new AbortController().signal },
    capabilities: { ...(hasTasks && TASKS_CAPABILITY), roots: {} },
    hasTasks,
    meta: {},
    logLevel: null,
    state: undefined,
    inputResponses: undefined,
    headers: null,
  };
  const begun = { finished: (outcome: string) => void ends.push(outcome), becomeTask: () => mayBecome };
  const target = { supervised, method: 'tools/call', params: { name: 'compute' }, tool: TOOL } as const;
  const result = await forwarder.run(target, request, () => Promise.resolve(begun)).catch((error: unknown) => error);
  return { result, ends, kept, refused, heard: JSON.stringify(heard) };
}

const DECLARED = 'io.modelcontextprotocol/tasks';

test('a call becomes a task, and has not ended then', async () => {
  const { result, ends, kept, heard } = await call({});
  expect(heard).toContain(DECLARED);
  expect(result).toEqual({ resultType: 'task', taskId: 'of-the-gateway' });
  expect(kept).toMatchObject([{ created: CREATED, capabilities: { roots: {}, ...TASKS_CAPABILITY } }]);
  expect(ends).toEqual([]);
  kept[0]?.finished('timeout');
  expect(ends).toEqual(['timeout']);
});

test.for<World>([{ hasTasks: false }, { server: {} }, { era: 'legacy' }, { isFull: true }])(
  'a server hears of no tasks with %j, and its result is that of the call',
  async (world) => {
    const { result, ends, heard } = await call({ ...world, answer: DONE });
    expect(heard).not.toContain(DECLARED);
    expect(result).toEqual(DONE);
    expect(ends).toEqual(['ok']);
  },
);

test.for<World>([{ hasTasks: false }, { server: {} }, { era: 'legacy' }, { mayBecome: false }])(
  'a task that a server begins with %j is cancelled, and the call an error',
  async (world) => {
    const { result, ends, kept, refused } = await call(world);
    expect(result).toMatchObject({ message: 'the server began a task where none is possible now' });
    expect(kept).toEqual([]);
    expect(refused).toEqual(['a']);
    expect(ends).toEqual(['error']);
  },
);

test('a task that cannot be read is an error', async () => {
  const { taskId, ...rest } = CREATED;
  const answer = wrapCreatedTask({ result: { resultType: 'task', ...rest, id: taskId } }).result;
  const { result, ends, refused } = await call({ answer });
  expect(result).toMatchObject({ message: 'the server answered with a task that cannot be read' });
  expect(refused).toEqual([]);
  expect(ends).toEqual(['error']);
});
