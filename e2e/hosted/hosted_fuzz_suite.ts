import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { installReply } from '../../shared/wire/connectors/connectors.ts';
import { mcpServerRecord } from '../../shared/wire/mcp/mcp_servers.ts';
import { auditVerification } from '../../shared/wire/audit_events.ts';
import { brokenCalls, checkReply, validCalls, type WireCall } from '../runtimes/api_calls.ts';
import { type DescribedOperation, readDocument } from '../runtimes/api_document.ts';
import { HINTS } from '../runtimes/api_hints.ts';
import { itemsSpec } from '../runtimes/connector_samples.ts';
import { TestSidecar } from '../runtimes/sidecar_client.ts';
import { countOf, IS_FULL } from '../support/full_counts.ts';
import type { HostedPerson, HostedWorker } from './hosted_worker.ts';

/** Calls of each operation by one person. The same in each run; a failure names the shrunk call. */
const RUNS = { seed: 20_260_103, numRuns: countOf(25, 2) };

/** As many runtimes run this at once. */
const RUNTIMES = 3;

/** The MCP server of the control plane and its authorization server refuse in the forms of their own specifications. */
const isOfMcp = (path: string) => /^\/(?:mcp$|oauth\/|\.well-known\/oauth-)/.test(path);

/** Somebody who calls, with a sidecar of their own. */
interface FuzzedPerson {
  readonly title: string;
  readonly person: HostedPerson;
  readonly sidecar: TestSidecar;
}

/** The people whose calls are made up: an owner, an admin and a member of one enterprise, and the owner of another. */
async function gather(worker: HostedWorker, runtime: string): Promise<readonly FuzzedPerson[]> {
  const titled = async (title: string, person: HostedPerson): Promise<FuzzedPerson> => {
    return { title, person, sidecar: await enrol(worker, person) };
  };
  const alone = async (name: string) => worker.openPerson((await worker.signIn(name)).browser, name);
  const owner = await alone(`fuzz-owner-${runtime}`);
  return [
    await titled('an owner', owner),
    await titled('an admin', await worker.takeIn(owner.program, `fuzz-admin-${runtime}`, 'admin')),
    await titled('a member', await worker.takeIn(owner.program, `fuzz-member-${runtime}`, 'member')),
    await titled('a stranger', await alone(`fuzz-stranger-${runtime}`)),
  ];
}

async function enrol(worker: HostedWorker, { program }: HostedPerson): Promise<TestSidecar> {
  const sidecar = await TestSidecar.make((path, init) => worker.send(path, init));
  await sidecar.enrol(await program.bearer());
  return sidecar;
}

/** The operations, with ids of the owner's enterprise where a call needs one. */
async function describeOperations(worker: HostedWorker, owner: HostedPerson): Promise<readonly DescribedOperation[]> {
  const { registry } = worker.world;
  const installed = await owner.program.call('POST', '/v1/connectors?owner=enterprise', itemsSpec('1.0.0'));
  const server = { name: 'approved', command: ['a-server'], tools: { approval: ['*'] }, owner: 'enterprise' };
  const registered = await owner.program.call('POST', '/v1/mcp-servers', server);
  const hints = {
    ...HINTS,
    connector_id: fc.constant(installReply.parse(await installed.json()).id),
    mcp_server_id: fc.constant(mcpServerRecord.parse(await registered.json()).id),
    registryId: fc.constantFrom(...[1, 2, 3].map((index) => registry.entry(index).server.name), 'no/such'),
  };
  return readDocument(await (await worker.send('/openapi.json')).text(), hints);
}

/** Who makes the calls of an operation: everybody in full, or one of them on one of the runtimes. */
function callersOf(people: readonly FuzzedPerson[], turn: number, shift: number): readonly FuzzedPerson[] {
  if (IS_FULL) return people;
  return turn % RUNTIMES === shift ? people.filter((_, index) => index === turn % people.length) : [];
}

/**
 * Made-up calls of every operation, of which no reply is a fault (5xx). `shift` differs between the runtimes: in a sample,
 * an operation is called on one of them.
 */
export function describeHostedFuzz(runtime: string, shift: number, workerOf: () => HostedWorker): void {
  describe(`made-up calls on ${runtime}`, () => {
    let worker: HostedWorker;
    let people: readonly FuzzedPerson[] = [];
    let operations: readonly DescribedOperation[] = [];
    /** The operations that somebody's call reached, by who it was. */
    const reached = new Map<string, Set<string>>();

    beforeAll(async () => {
      worker = workerOf().from(`198.51.100.${shift + 1}`);
      people = await gather(worker, runtime);
      const [owner] = people;
      if (owner !== undefined) operations = await describeOperations(worker, owner.person);
    });

    const send = async ({ person, sidecar }: FuzzedPerson, call: WireCall) => {
      const { operation, target, body, contentType } = call;
      const ofSidecar = async () => {
        const caller = operation.path === '/v1/sidecar/leave' ? await enrol(worker, person) : sidecar;
        return caller.token(await caller.claims(operation.method, target, body ?? ''));
      };
      const token = operation.access === 'sidecar' ? await ofSidecar() : await person.program.bearer();
      const own = { ...call.headers, authorization: `Bearer ${token}` };
      const headers = { ...own, ...(body !== null && { 'content-type': contentType }) };
      return worker.send(target, { method: operation.method, headers, ...(body !== null && { body }) });
    };

    const check = async (caller: FuzzedPerson, call: WireCall) => {
      const reply = await send(caller, call);
      const { method, path } = call.operation;
      if (reply.status < 400)
        reached.set(caller.title, (reached.get(caller.title) ?? new Set()).add(`${method} ${path}`));
      // A page of ours, or an answer in another specification's form.
      if (isOfMcp(path) || call.operation.isOfBrowser) expect(reply.status).toBeLessThan(500);
      else await checkReply(call, reply);
      await reply.body?.cancel().catch(() => undefined);
    };

    test('get the described reply or a refusal, whoever makes them', async () => {
      for (const [index, operation] of operations.entries()) {
        for (const caller of callersOf(people, index, shift)) {
          const calls = fc.oneof(validCalls(operation), brokenCalls(operation));
          await fc.assert(
            fc.asyncProperty(calls, (call) => check(caller, call)),
            RUNS,
          );
        }
      }
      expect(operations.length).toBeGreaterThan(150);
      const counts = people.map(({ title }) => reached.get(title)?.size ?? 0);
      // In a sample, a person makes few calls.
      const isEnough = IS_FULL ? Math.min(...counts) > 10 : counts.reduce((sum, count) => sum + count) > 5;
      expect([counts, isEnough]).toEqual([counts, true]);
    });

    test('have ended nobody’s sign-in, and left a log that verifies', async () => {
      for (const { title, person } of people) {
        const { status } = await person.program.call('GET', '/v1/me');
        const verified = await person.program.call('GET', '/v1/audit-events/verify');
        expect([title, status, auditVerification.parse(await verified.json()).ok]).toEqual([title, 200, true]);
      }
    });
  });
}
