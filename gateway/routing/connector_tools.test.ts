import type { Tool } from '@modelcontextprotocol/server';
import { describe, expect, it } from 'vitest';
import { err, ok, type Result } from '../../shared/model/result.ts';
import type { RunReply, RunRequest } from '../../shared/wire/connectors/connectors.ts';
import type { ListedOperation } from '../../shared/wire/connectors/connector_operations.ts';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import type { ConnectorCalls, OperationList } from '../sidecar/connector_calls.ts';
import type { LocalApiFailure } from '../sidecar/local_api.ts';
import { connectorTools } from './connector_tools.ts';
import type { ToolSource } from '../tool_source.ts';

const UNREACHABLE: LocalApiFailure = { code: 'sidecar_unreachable', message: 'it is away', details: {} };
const REPLY: RunReply = {
  status: 'proxied',
  audit_id: 'evt_1',
  connector_fqn: 'acme/tickets',
  operation: 'list-issues',
  upstream_status: 200,
  content_type: 'application/json; charset=utf-8',
  body_base64: base64('{"issues":[1]}'),
};

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

function operation(changes: Partial<ListedOperation> = {}): ListedOperation {
  return {
    connector_fqn: 'acme/tickets',
    connector_title: 'Tickets',
    operation: 'list-issues',
    summary: 'List issues',
    description: 'Newest first.',
    effect: 'read',
    approval: 'none',
    hosts: ['api.example.com'],
    input_schema: { type: 'object', properties: { state: { type: 'string' } } },
    input_names: {},
    host_property: null,
    ...changes,
  };
}

/** A sidecar whose list and answers are what a test says. */
class FakeCalls implements ConnectorCalls {
  list: Result<OperationList, LocalApiFailure> = ok({ etag: '"1"', operations: [operation()] });
  answer: Result<RunReply, LocalApiFailure> = ok(REPLY);
  readonly runs: { readonly request: RunRequest; readonly sessionId: string | null; readonly signal: AbortSignal }[] =
    [];
  readonly asked: { readonly heldEtag: string | null; readonly waitSeconds: number }[] = [];
  readonly #waiting: (() => void)[] = [];

  async operations(
    heldEtag: string | null,
    waitSeconds: number,
    signal: AbortSignal,
  ): Promise<Result<OperationList | null, LocalApiFailure>> {
    this.asked.push({ heldEtag, waitSeconds });
    const isChanged = (): boolean => !this.list.ok || this.list.value.etag !== heldEtag;
    if (!isChanged() && waitSeconds > 0) {
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        signal.addEventListener('abort', () => resolve());
      });
    }
    if (!this.list.ok) return this.list;
    return isChanged() ? this.list : ok(null);
  }

  run(request: RunRequest, sessionId: string | null, signal: AbortSignal): Promise<Result<RunReply, LocalApiFailure>> {
    this.runs.push({ request, sessionId, signal });
    return Promise.resolve(this.answer);
  }

  use(list: Result<OperationList, LocalApiFailure>): void {
    this.list = list;
    for (const wake of this.#waiting.splice(0)) wake();
  }
}

const sidecar = (): FakeCalls => new FakeCalls();
const never = new AbortController().signal;
const TOOL = 'svc_run__acme_tickets__list-issues';

function sourceOf(fake: FakeCalls, pause = async (): Promise<void> => {}): ToolSource {
  return connectorTools({ sidecar: fake, pause });
}

function toolsOf(operations: readonly ListedOperation[]): Promise<readonly Tool[]> {
  const fake = sidecar();
  fake.list = ok({ etag: '"2"', operations });
  return sourceOf(fake).tools(HOST_CALLER, never);
}

async function callTool(
  fake: FakeCalls,
  args: Readonly<Record<string, unknown>> = {},
  changes: { readonly tool?: string; readonly sessionId?: string | null } = {},
) {
  const told: unknown[] = [];
  const { tool = TOOL, sessionId = null } = changes;
  const caller = { sessionId, servers: sessionId === null ? null : [] };
  const call = { caller, tool, args, signal: never, progress: (progress: unknown) => void told.push(progress) };
  return { result: await sourceOf(fake).call(call), told };
}

describe('the tools of connectors', () => {
  it('exist for each operation, with its schema', async () => {
    expect(await toolsOf([operation()])).toEqual([
      {
        name: TOOL,
        title: 'Tickets: List issues',
        description:
          'List issues\n\nNewest first.\n\nOperation list-issues of the connector acme/tickets. It only reads.',
        inputSchema: { type: 'object', properties: { state: { type: 'string' } } },
        annotations: { title: 'Tickets: List issues', readOnlyHint: true, destructiveHint: false, openWorldHint: true },
      },
    ]);
  });

  it.each([
    ['read', true, false],
    ['write', false, undefined],
    ['delete', false, true],
    ['spend', false, true],
    ['external-send', false, true],
  ] as const)('of effect %s have matching hints', async (effect, readOnlyHint, destructiveHint) => {
    const [tool] = await toolsOf([operation({ effect })]);
    expect(tool?.annotations).toMatchObject({ readOnlyHint });
    expect(tool?.annotations?.destructiveHint).toBe(destructiveHint);
  });

  it('say that each call needs an approval', async () => {
    const [tool] = await toolsOf([operation({ approval: 'required' })]);
    expect(tool?.description).toContain('Each call needs the approval of a person.');
  });

  it("show hidden characters in a spec's texts", async () => {
    const hidden = 'Reads\u{200b}\u{e0041} issues';
    const input_schema = { type: 'object', properties: { state: { type: 'string', description: hidden } } } as const;
    const [tool] = await toolsOf([operation({ summary: hidden, input_schema })]);
    expect(tool).toMatchObject({
      title: 'Tickets: Reads<U+200B><U+E0041> issues',
      inputSchema: { properties: { state: { description: 'Reads<U+200B><U+E0041> issues' } } },
      _meta: { 'svc/hidden-characters': ['U+200B', 'U+E0041'] },
    });
    expect(JSON.stringify(tool)).not.toContain('\u{200b}');
  });

  it('have unique names for any connector and operation names', async () => {
    const named = [
      ['acme/tickets', 'list.issues'],
      ['acme/tickets', 'list_issues'],
      ['acme_tickets/list', 'issues'],
      ['acme.tickets/list', 'issues'],
      ['acme/tickets-list', 'issues'],
      [`${'a'.repeat(60)}/b`, 'list'],
      [`${'a'.repeat(60)}/c`, 'list'],
    ] as const;
    const tools = await toolsOf(named.map(([fqn, name]) => operation({ connector_fqn: fqn, operation: name })));
    const names = tools.map(({ name }) => name);
    expect(new Set(names).size).toBe(named.length);
    for (const name of names) expect(name).toMatch(/^svc_run__[A-Za-z0-9_-]{1,55}$/);
  });

  it('are requested each time, and reused while unchanged', async () => {
    const fake = sidecar();
    const source = sourceOf(fake);
    const first = await source.tools(HOST_CALLER, never);
    expect(await source.tools(HOST_CALLER, never)).toBe(first);
    fake.list = ok({ etag: '"2"', operations: [] });
    expect(await source.tools(HOST_CALLER, never)).toEqual([]);
    expect(fake.asked.map(({ heldEtag }) => heldEtag)).toEqual([null, '"1"', '"1"']);
  });

  it('are left out while the sidecar cannot list them', async () => {
    const fake = sidecar();
    fake.list = err(UNREACHABLE);
    await expect(sourceOf(fake).tools(HOST_CALLER, never)).rejects.toThrow('it is away');
  });
});

describe('a call', () => {
  it("runs in the caller's session", async () => {
    const fake = sidecar();
    await callTool(fake, { state: 'open' }, { sessionId: 'ses_1' });
    expect(fake.runs).toMatchObject([
      {
        sessionId: 'ses_1',
        request: {
          connector_fqn: 'acme/tickets',
          operation: 'list-issues',
          tool: TOOL,
          args: { state: 'open' },
        },
      },
    ]);
  });

  it('maps properties back to inputs and host', async () => {
    const fake = sidecar();
    const names = { input_names: { filter_state_: 'filter[state]' }, host_property: 'host' };
    fake.list = ok({ etag: '"2"', operations: [operation(names)] });
    await callTool(fake, { filter_state_: 'open', host: 'eu.example.com' });
    expect(fake.runs[0]?.request).toMatchObject({ args: { 'filter[state]': 'open' }, host: 'eu.example.com' });
    const { result } = await callTool(fake, { host: 7 });
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('- host must be a text') }],
    });
    expect(fake.runs).toHaveLength(1);
  });

  it('returns the reply as text, and as an object if it is one', async () => {
    const { result } = await callTool(sidecar());
    expect(result).toEqual({
      content: [{ type: 'text', text: '{"issues":[1]}' }],
      structuredContent: { issues: [1] },
      _meta: { 'svc/upstream_status': 200, 'svc/audit_id': 'evt_1' },
    });
  });

  it.each([
    ['application/json', '[1,2]'],
    ['application/json', 'not json'],
    ['text/plain', '{"a":1}'],
    ['', 'hello'],
  ])('returns a reply of type %j that is not a JSON object only as text', async (content_type, body) => {
    const fake = sidecar();
    fake.answer = ok({ ...REPLY, content_type, body_base64: base64(body) });
    const { result } = await callTool(fake);
    expect(result.content).toEqual([{ type: 'text', text: body }]);
    expect(result.structuredContent).toBeUndefined();
  });

  it('returns an image as an image, other bytes as a resource, and a note for no body', async () => {
    const fake = sidecar();
    const bytes = Buffer.from([0xff, 0xd8, 0xff]).toString('base64');
    fake.answer = ok({ ...REPLY, content_type: 'image/png', body_base64: bytes });
    expect((await callTool(fake)).result.content).toEqual([{ type: 'image', mimeType: 'image/png', data: bytes }]);
    fake.answer = ok({ ...REPLY, content_type: 'application/zip', body_base64: bytes });
    const resource = { uri: 'svc-reply:evt_1', mimeType: 'application/zip', blob: bytes };
    expect((await callTool(fake)).result.content).toEqual([{ type: 'resource', resource }]);
    fake.answer = ok({ ...REPLY, upstream_status: 204, content_type: '', body_base64: '' });
    expect((await callTool(fake)).result.content).toEqual([{ type: 'text', text: 'The upstream answered 204.' }]);
  });

  it("returns the upstream's error as a tool error", async () => {
    const fake = sidecar();
    fake.answer = ok({ ...REPLY, upstream_status: 404, body_base64: base64('{"message":"none"}') });
    const { result } = await callTool(fake);
    expect(result).toMatchObject({
      isError: true,
      content: [{ text: 'The upstream answered 404.' }, { text: '{"message":"none"}' }],
    });
    expect(result.structuredContent).toBeUndefined();
  });

  it.each([
    ['approval_required', { approval_id: 'apr_7' }, 'svc approvals approve apr_7'],
    ['approval_required', { approval_id: '; rm -rf' }, 'svc approvals list'],
    ['approval_required', {}, 'svc approvals list'],
    ['approval_denied', { approval_id: 'apr_7' }, 'Do not repeat it'],
    ['binding_required', {}, 'svc connector credential set acme/tickets'],
    ['reauthorisation_required', {}, 'svc connector authorize acme/tickets'],
    ['connector_operation_not_found', {}, 'list the tools again'],
  ])('refused with %s %j says what to do: %s', async (code, details, advice) => {
    const fake = sidecar();
    fake.answer = err({ code, message: 'why', details });
    const { result } = await callTool(fake);
    expect(result).toMatchObject({ isError: true, structuredContent: { error: { code, message: 'why', details } } });
    expect(result.content[0]).toMatchObject({ type: 'text', text: expect.stringContaining(`${code}: why`) });
    expect(result.content[0]).toMatchObject({ text: expect.stringContaining(advice) });
  });

  it("names wrong arguments by the caller's names", async () => {
    const fake = sidecar();
    fake.list = ok({ etag: '"2"', operations: [operation({ input_names: { filter_state_: 'filter[state]' } })] });
    const fields = [
      { field: 'args.filter[state]', message: 'must be a text' },
      { field: 'args.x', message: 'is no argument of list-issues' },
    ];
    fake.answer = err({ code: 'invalid_args', message: 'all in one line', details: { fields } });
    const { result } = await callTool(fake);
    const text =
      'invalid_args: these arguments are invalid:\n- filter_state_ must be a text\n- x is no argument of list-issues';
    expect(result).toMatchObject({ isError: true, content: [{ text }] });
  });

  it('tells the client that it waits for an approval', async () => {
    const fake = sidecar();
    fake.list = ok({ etag: '"2"', operations: [operation({ approval: 'required' })] });
    expect((await callTool(fake)).told).toMatchObject([{ progress: 0, message: expect.stringContaining('approve') }]);
    expect((await callTool(sidecar())).told).toEqual([]);
  });

  it('of a removed tool is a tool error', async () => {
    const fake = sidecar();
    const { result } = await callTool(fake, {}, { tool: 'svc_run__acme_other__x' });
    expect(result).toMatchObject({ isError: true });
    expect(fake.runs).toEqual([]);
  });
});

describe('watching', () => {
  it('reports each change, but not the initial list', async () => {
    const fake = sidecar();
    let changes = 0;
    const stop = sourceOf(fake).watch(() => (changes += 1));
    await expect.poll(() => fake.asked).toHaveLength(2);
    expect(changes).toBe(0);
    fake.use(ok({ etag: '"2"', operations: [] }));
    await expect.poll(() => changes).toBe(1);
    stop();
    fake.use(ok({ etag: '"3"', operations: [] }));
    await expect.poll(() => fake.asked.at(-1)).toMatchObject({ heldEtag: '"2"' });
    expect(changes).toBe(1);
  });

  it('reports when the list is available again', async () => {
    const fake = sidecar();
    let changes = 0;
    fake.list = err(UNREACHABLE);
    const paused = Promise.withResolvers<undefined>();
    const stop = sourceOf(fake, () => paused.promise).watch(() => (changes += 1));
    await expect.poll(() => fake.asked).toHaveLength(1);
    fake.list = ok({ etag: '"1"', operations: [operation()] });
    paused.resolve(undefined);
    await expect.poll(() => changes).toBe(1);
    stop();
  });
});
