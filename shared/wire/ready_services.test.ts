import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { connectorSpec } from './connectors/connector_spec.ts';
import { findReadyServices, readyServices, testOperation, waysOf } from './ready_services.ts';
import { parseSealedService } from './sealed_service.ts';

const read = (folder: string): unknown[] => {
  const url = new URL(`../../catalog/${folder}/`, import.meta.url);
  return readdirSync(url).map((file) => parse(readFileSync(new URL(file, url), 'utf8')));
};
const services = read('services').map((value) => {
  const parsed = parseSealedService(value);
  if (!parsed.ok) throw new Error(parsed.error);
  return parsed.value;
});
const connectors = read('connectors').map((value) => connectorSpec.parse(value));
const all = readyServices(services, connectors);
const named = (name: string) => {
  const found = all.find((ready) => ready.name === name);
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
};

test('lists every service and every connector of the catalog once', () => {
  expect(all.flatMap(({ service }) => service?.name ?? [])).toHaveLength(services.length);
  const fqns = all.flatMap(({ connector }) => connector?.connector.fqn ?? []);
  expect(fqns.toSorted()).toEqual(connectors.map(({ connector }) => connector.fqn).toSorted());
  expect(new Set(all.map(({ name }) => name)).size).toBe(all.length);
});

test('a service whose connector is missing is an error, not a service without one', () => {
  expect(() => readyServices(services, [])).toThrow('the catalog has no connector');
});

test.each([
  ['GitHub', 'github'],
  ['api.github.com', 'github'],
  ['GH_TOKEN', 'github'],
  ['calendar google', 'google-calendar'],
])('%s finds %s', (text, name) => {
  expect(findReadyServices(all, text).map((ready) => ready.name)).toEqual([name]);
});

test('every word has to fit, and no text fits all', () => {
  expect(findReadyServices(all, 'github calendar')).toEqual([]);
  expect(findReadyServices(all, ' ')).toEqual(all);
});

describe('the ways', () => {
  test('the narrowest is the first', () => {
    expect(waysOf(named('github'))).toEqual(['connector', 'bindings']);
    expect(waysOf(named('anthropic'))).toEqual(['bindings']);
    expect(waysOf(named('vercel'))).toEqual(['connector']);
  });
});

describe('the test call', () => {
  test.each([
    ['github', 'get-user'],
    ['stripe', 'get-balance'],
    ['openai', 'list-models'],
  ])('of %s is %s', (name, operation) => {
    expect(testOperation(named(name).connector ?? { operations: [] })?.name).toBe(operation);
  });

  test('never writes, waits for a person or needs an input', () => {
    for (const { connector } of all) {
      const operation = connector === null ? null : testOperation(connector);
      if (operation === null) continue;
      expect(operation).toMatchObject({ method: 'GET', effect: 'read', approval: 'none' });
    }
    const [first] = connectors[0]?.operations ?? [];
    if (first === undefined) throw new Error('no operation');
    for (const change of [{ method: 'POST' as const }, { effect: 'write' as const }, { approval: 'required' as const }])
      expect(testOperation({ operations: [{ ...first, ...change }] })).toBeNull();
  });
});
