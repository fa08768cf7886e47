import { expect, test } from 'vitest';
import { certificateHints } from './certificate_hints.ts';

const event = (host: string | undefined, reason: string) => ({
  data: { 'svc.proxy.upstream.host': host, 'svc.proxy.reason': reason },
});

test('names the command once for each host at which the certificate was refused, by name', () => {
  const events = ['b.example.test', 'a.example.test', 'b.example.test'].map((host) =>
    event(host, 'client_refused_certificate'),
  );
  const others = [event('bound.example.test', 'client_tls_failed'), event(undefined, 'client_refused_certificate')];
  expect(certificateHints([...events, ...others]).map((hint) => hint.split(': ').at(-1))).toEqual([
    'svc tunnel add a.example.test',
    'svc tunnel add b.example.test',
  ]);
});

test('says nothing about an address, and has at most five lines', () => {
  const many = Array.from({ length: 9 }, (_, n) => event(`h${n}.example.test`, 'client_refused_certificate'));
  expect(certificateHints([event('8.8.8.8', 'client_refused_certificate')])).toEqual([]);
  expect(certificateHints(many)).toHaveLength(5);
});
