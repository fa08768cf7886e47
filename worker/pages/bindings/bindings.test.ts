import { expect, test } from 'vitest';
import { newBindingPage } from './binding_form.ts';
import { bindingsPage, type BindingsView } from './bindings.ts';
import { EMPTY_FORM } from '../components/form_field.ts';

const TIME = '2026-01-01T00:00:00.000Z';
const view: BindingsView = {
  bindings: {
    items: [
      {
        id: 'bnd_01m7yjc1391a5krmyacsgq908t',
        owner: 'personal',
        host: '*.example.com',
        credential_ref: 'vault://user/demo',
        scheme: 'bearer',
        emit_mechanism: 'inject',
        allowed_hosts: [],
        body: 'buffer',
        created_at: TIME,
        updated_at: TIME,
      },
    ],
    isWhole: true,
  },
  query: { q: '', sort: '', page: 1 },
  use: {
    secrets: { items: [], isWhole: true },
    usersOf: () => [],
    lastFetchOf: () => null,
    lastFetchBy: () => null,
  },
  referencesOf: () => [],
  nowMs: Date.parse(TIME),
  done: undefined,
  question: EMPTY_FORM,
  explanation: null,
  limited: new Map(),
  mayChange: () => true,
};

async function textOfPage(changes: Partial<BindingsView>): Promise<string> {
  const text = String(await bindingsPage({ ...view, ...changes }).content);
  return text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
}

test('the list of bindings says which requests get which of several accounts of a host', async () => {
  const [first] = view.bindings.items;
  if (first === undefined) throw new Error('no binding');
  const second = {
    ...first,
    id: 'bnd_01m7yjc1391a5krmyacsgq908v',
    credential_ref: 'vault://user/work',
    emit_mechanism: 'sentinel-swap' as const,
    sentinel: { value: 'a-placeholder-of-work' },
  };
  const text = await textOfPage({ bindings: { items: [first, second], isWhole: true } });
  expect(text).toContain('vault://user/demo account of requests without a placeholder');
  expect(text).toContain('vault://user/work account of requests with its placeholder');
  expect(await textOfPage({})).not.toContain('account of');
  const sameSecret = { ...second, credential_ref: first.credential_ref };
  expect(await textOfPage({ bindings: { items: [first, sameSecret], isWhole: true } })).not.toContain('account of');
});

test('the list of bindings says which are read-only because operations of their hosts need an approval, and what to choose', async () => {
  const limited = new Map([['bnd_01m7yjc1391a5krmyacsgq908t', ['api.example.com']]]);
  const text = await textOfPage({ limited });
  expect(text).toContain('On api.example.com, operations of a connector need an approval.');
  expect(text).toContain('only reads on api.example.com');
  expect(await textOfPage({})).not.toMatch(/need an approval|only reads/);
});

test('the list of bindings says which have no secret, and what to do', async () => {
  const reference = { owner: 'personal', reference: 'vault://user/demo' } as const;
  const missing = await textOfPage({ referencesOf: () => [{ ...reference, state: 'missing' }] });
  expect(missing).toContain('Not stored Its requests get status 503 until you store a personal secret there');
  const other = await textOfPage({ referencesOf: () => [{ ...reference, state: 'other_owner' }] });
  expect(other).toContain('At this path is only a secret of the enterprise, and a personal binding uses none');
  expect(await textOfPage({ referencesOf: () => [{ ...reference, state: 'stored' }] })).not.toContain('tored Its');
});

test('the form of an AWS signature says that its region may be a set', async () => {
  const parts = {
    form: EMPTY_FORM,
    references: [],
    reference: { owner: 'personal', reference: '', state: null },
    templates: [],
    owners: 'personal',
  } as const;
  const pageOf = async (scheme: 'bearer' | 'sigv4-resign') =>
    String(await newBindingPage({ ...parts, scheme }).content);
  expect(await pageOf('sigv4-resign')).toContain('Or a set of regions, such as * or us-east-1,eu-*');
  expect(await pageOf('bearer')).not.toContain('a set of regions');
});
