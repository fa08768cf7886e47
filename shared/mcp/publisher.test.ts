import { expect, test } from 'vitest';
import { publisherOf } from './publisher.ts';

test.each([
  ['com.stripe/mcp', 'stripe', 'com'],
  ['com.figma.mcp/mcp', 'figma', 'com'],
  ['ai.exa/exa', 'exa', 'domain'],
  ['uk.co.bank/mcp', 'bank', 'domain'],
  ['uk.co.bank.api/mcp', 'bank', 'domain'],
  ['io.github.GitHub/github-mcp-server', 'github', 'account'],
  ['app.vercel.acme/mcp', 'acme', 'account'],
  ['net.cloudfront.acme/mcp', 'acme', 'account'],
])('%s proves %s', (name, label, proof) => {
  expect(publisherOf(name)).toEqual({ namespace: name.split('/')[0], label, proof });
});

test.each([
  'com.stripe.customers.acme/mcp',
  'com.acme.stripe/mcp',
  'io.github/mcp',
  'io.github.a.b/mcp',
  'app.vercel/mcp',
  'dev.ngrok/mcp',
  'com.amazonaws.s3.acme/mcp',
  'uk.co/mcp',
  'stripe/mcp',
  'mcp',
  // Letters that become an s and a k once they are folded.
  'com.\uFF53tripe/mcp',
  'com.\u212Aubernetes/mcp',
  '',
])('%j proves no name', (name) => {
  expect(publisherOf(name)).toMatchObject({ label: null, proof: null });
});
