import { afterAll, beforeAll, expect, test } from 'vitest';
import { ITEMS_SPEC, UPSTREAM_HOST } from '../../../e2e/runtimes/connector_samples.ts';
import { addUser, type InProcess, startInProcess } from '../../../e2e/runtimes/in_process.ts';
import { connectorSpec } from '../../../shared/wire/connectors/connector_spec.ts';
import { hostBindingInput, type HostBindingRecord } from '../../../shared/wire/host_binding.ts';
import type { Caller } from '../../kernel/caller.ts';
import { findAccount } from '../../store/accounts.ts';
import { storeConnectorCredential } from '../connectors/connector_credentials.ts';
import { installConnector, removeConnector } from '../connectors/connectors.ts';
import { limitsOf } from './binding_limits.ts';
import { createHostBinding } from './host_bindings.ts';

let control: InProcess;
let owner: Caller;
let stranger: Caller;

beforeAll(async () => {
  control = await startInProcess();
  const { context } = control;
  const account = await findAccount(context.database, context.local?.userId ?? '');
  owner = { userId: account!.user.id, enterpriseId: account!.enterprise.id, role: 'admin' };
  stranger = await addUser(context, null);
});
afterAll(() => control.stop());

async function bind(caller: Caller, host: string, change: object = {}): Promise<HostBindingRecord> {
  const input = hostBindingInput.parse({ host, scheme: 'bearer', credential_ref: 'vault://user/demo', ...change });
  const created = await createHostBinding(control.context, caller, input);
  if (!created.ok) throw new Error(created.error.message);
  return created.value.value;
}

test('a binding without an effect is limited while its host has an operation that needs an approval', async () => {
  const { context } = control;
  const open = await bind(owner, UPSTREAM_HOST);
  const wide = await bind(owner, '*.example.test');
  const explicit = await bind(owner, UPSTREAM_HOST, { effect: 'write', owner: 'enterprise' });
  const elsewhere = await bind(owner, 'other.example.com');
  const all = [open, wide, explicit, elsewhere];
  expect(await limitsOf(context, owner, all)).toEqual(new Map());
  const installed = await installConnector(context, owner, 'personal', connectorSpec.parse(ITEMS_SPEC));
  if (!installed.ok) throw new Error(installed.error.message);
  // Without a credential the connector is inactive, and changes nothing.
  expect(await limitsOf(context, owner, all)).toEqual(new Map());
  const { id } = installed.value.value.reply;
  await storeConnectorCredential(context, owner, id, { kind: 'api_key', value: 'a-key-of-a-test' });
  // A binding for the exact host takes precedence over one for a wildcard.
  expect(await limitsOf(context, owner, all)).toEqual(new Map([[open.id, [UPSTREAM_HOST]]]));
  expect(await limitsOf(context, owner, [wide])).toEqual(new Map([[wide.id, [UPSTREAM_HOST]]]));
  const theirs = await bind(stranger, UPSTREAM_HOST);
  expect(await limitsOf(context, stranger, [theirs])).toEqual(new Map());
  await removeConnector(context, owner, installed.value.value.reply.id);
  expect(await limitsOf(context, owner, all)).toEqual(new Map());
});
