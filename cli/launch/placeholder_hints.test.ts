import { expect, test } from 'vitest';
import { placeholderHints } from './placeholder_hints.ts';

const event = (host: string, reason?: string) => ({
  data: {
    'svc.proxy.upstream.host': host,
    'svc.proxy.binding.host': 'api.github.com',
    ...(reason !== undefined && { 'svc.proxy.reason': reason }),
  },
});

test('an unbound host that got a placeholder is named once, with what to check first', () => {
  const stray = event('api.githubcopilot.com', 'placeholder_unbound');
  const hints = placeholderHints([stray, event('example.test'), stray, event('other.test', 'upstream_unreachable')]);
  expect(hints).toHaveLength(1);
  expect(hints[0]).toContain('bind api.githubcopilot.com? The placeholder of api.github.com was sent there.');
  expect(hints[0]).toContain('Only if it belongs to the same service');
});

test('an agent that tries many hosts fills no screen', () => {
  const many = Array.from({ length: 100 }, (_, n) => event(`h${n}.test`, 'placeholder_unbound'));
  expect(placeholderHints(many)).toHaveLength(5);
});

test('a host to which the agent is known to send its key needs no word', () => {
  const events = [event('known.test', 'placeholder_unbound'), event('other.test', 'placeholder_unbound')];
  expect(placeholderHints(events, ['known.test']).map((hint) => hint.split('?')[0])).toEqual(['bind other.test']);
});
