import { expect, test } from 'vitest';
import { HOST_CALLER } from '../../machine/mcp_caller.ts';
import { LinkedResources } from './linked_resources.ts';

const URI = 'demo://thing/1';
const one = { sessionId: 'ses_1', servers: ['mcp_1'] };
const other = { sessionId: 'ses_2', servers: ['mcp_1'] };
const linking = (uri: string) => ({ content: [{ type: 'resource_link', uri }] });

test('a link is followed for whoever was given the result, and for nobody else', () => {
  const links = new LinkedResources();
  links.learn(one, 'mcp_1', linking(URI));
  expect(links.serversOf(one, URI)).toEqual(['mcp_1']);
  expect(links.serversOf(other, URI)).toEqual([]);
  expect(links.serversOf(HOST_CALLER, URI)).toEqual([]);
});

test('a link that two servers gave is of both, and of none twice', () => {
  const links = new LinkedResources();
  for (const id of ['mcp_1', 'mcp_2', 'mcp_1']) links.learn(one, id, linking(URI));
  expect(links.serversOf(one, URI)).toEqual(['mcp_1', 'mcp_2']);
});

test('of a result only so many are kept, none that is longer than a URI is, and of all only the newest', () => {
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
