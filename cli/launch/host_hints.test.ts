import { expect, test } from 'vitest';
import { certificateHints, plainHttpHints } from './host_hints.ts';

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

test('names the command once for each host to which plain http was refused', () => {
  const hosts = ['deb.example.test', 'apt.example.test', 'deb.example.test', '10.0.0.7', undefined];
  const events = hosts.map((host) => event(host, 'non_connect_proxy_request'));
  const bound = event('bound.example.test', 'plain_http_bound_host');
  expect(plainHttpHints([...events, bound]).map((hint) => hint.split(': ').at(-1))).toEqual([
    'svc allow --plain-http apt.example.test',
    'svc allow --plain-http deb.example.test',
  ]);
});
