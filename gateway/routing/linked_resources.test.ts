import { expect, test } from 'vitest';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import { LinkedResources } from './linked_resources.ts';

const URI = 'demo://thing/1';
const one = { sessionId: 'ses_1', servers: ['mcp_1'] };
const other = { sessionId: 'ses_2', servers: ['mcp_1'] };
const linking = (uri: string) => ({ content: [{ type: 'resource_link', uri }] });

test('a link works only for the caller that received the result', () => {
  const links = new LinkedResources();
  links.learn(one, 'mcp_1', linking(URI));
  expect(links.serversOf(one, URI)).toEqual(['mcp_1']);
  expect(links.serversOf(other, URI)).toEqual([]);
  expect(links.serversOf(HOST_CALLER, URI)).toEqual([]);
});

test('a link from two servers belongs to both, without duplicates', () => {
  const links = new LinkedResources();
  for (const id of ['mcp_1', 'mcp_2', 'mcp_1']) links.learn(one, id, linking(URI));
  expect(links.serversOf(one, URI)).toEqual(['mcp_1', 'mcp_2']);
});

test('limits the links per result, their length, and their total number', () => {
  const links = new LinkedResources();
  const many = Array.from({ length: 300 }, (_, index) => ({ type: 'resource', resource: { uri: `demo://${index}` } }));
  links.learn(one, 'mcp_1', { content: many });
  expect(links.serversOf(one, 'demo://255')).toEqual(['mcp_1']);
  expect(links.serversOf(one, 'demo://256')).toEqual([]);
  links.learn(one, 'mcp_1', linking(`demo://${'x'.repeat(4_096)}`));
  for (let index = 0; index < 4_096; index += 1) links.learn(one, 'mcp_1', linking(`demo://more/${index}`));
  expect(links.serversOf(one, 'demo://255')).toEqual([]);
  expect(links.serversOf(one, 'demo://more/4095')).toEqual(['mcp_1']);
});
