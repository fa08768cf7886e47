import { expect, test } from 'vitest';
import { declaresTasks, TASKS_CAPABILITY, unwrapCreatedTask, wrapCreatedTask } from './task_messages.ts';

const CREATED = {
  taskId: 'a',
  status: 'working',
  createdAt: '2026-07-28T00:00:00Z',
  lastUpdatedAt: '2026-07-28T00:00:00Z',
  ttlMs: null,
};
const wrap = (result: object) => wrapCreatedTask({ jsonrpc: '2.0', id: 1, result }).result;

test('a task that a server has created is received as a result that the SDK accepts', () => {
  const wrapped = wrap({ resultType: 'task', ...CREATED });
  expect(wrapped).toMatchObject({ resultType: 'complete', content: [] });
  expect(unwrapCreatedTask({ ...wrapped })).toEqual(CREATED);
});

test('a task without its fields is invalid', () => {
  expect(unwrapCreatedTask({ ...wrap({ resultType: 'task', ...CREATED, taskId: '' }) })).toBe('invalid');
  expect(unwrapCreatedTask({ ...wrap({ resultType: 'task', ...CREATED, status: 'other' }) })).toBe('invalid');
});

test('every other message stays as it is', () => {
  const messages = [
    { id: 1, result: { resultType: 'complete', content: [] } },
    { id: 1, error: { code: 1, message: 'x' } },
    { method: 'notifications/message', params: {} },
    { id: 1, result: null },
  ];
  for (const message of messages) expect(wrapCreatedTask(message)).toBe(message);
  expect(unwrapCreatedTask({ content: [], _meta: { other: 1 } })).toBeNull();
  expect(unwrapCreatedTask({ content: [] })).toBeNull();
});

test('only the whole name of the extension declares it', () => {
  expect(declaresTasks(TASKS_CAPABILITY)).toBe(true);
  expect(declaresTasks({ extensions: { 'io.modelcontextprotocol/task': {} } })).toBe(false);
  expect(declaresTasks(undefined)).toBe(false);
});
