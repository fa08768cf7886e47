import { describe, expect, test } from 'vitest';
import type { McpServer } from '../model/mcp_server.ts';
import { consentText, needsConsent, findUncheckedCode } from './consent_hash.ts';
import { mcpReference } from './references.ts';
import { localServer, remoteServer, SERVER_ID } from './testing/servers.ts';

const base = localServer({ env: { A: '1', B: mcpReference(SERVER_ID, 'B') } });

describe('the text that consent is bound to', () => {
  test('is one canonical text', () => {
    const same = localServer({ env: { B: mcpReference(SERVER_ID, 'B'), A: '1' } });
    expect(consentText(base)).toBe(consentText(same));
    expect(JSON.parse(consentText(base))).toEqual({
      mode: 'local',
      command: base.command,
      env: base.env,
      version: '1.0.0',
      isolation: 'process',
    });
  });

  test.each<[string, Partial<McpServer>]>([
    ['mode', { mode: 'remote' }],
    ['program', { command: ['uvx', '-y', 'demo-mcp@1.0.0'] }],
    ['argument', { command: [...base.command, '--all'] }],
    ['how arguments are cut', { command: ['npx', '-y demo-mcp@1.0.0'] }],
    ['name of a variable', { env: { ...base.env, C: '' } }],
    ['plain value of a variable', { env: { ...base.env, A: '--require=/tmp/x.js' } }],
    ['reference', { env: { ...base.env, B: mcpReference(SERVER_ID, 'C') } }],
    ['version', { version: '1.0.1' }],
    ['no version', { version: null }],
    ['isolation', { isolation: 'container' }],
    ['lone surrogate', { env: { ...base.env, A: '\ud800' } }],
  ])('changes with the %s', (_what, change) => {
    expect(consentText({ ...base, ...change })).not.toBe(consentText(base));
  });

  test.each<[string, Partial<McpServer>]>([
    ['name', { name: 'other' }],
    ['description', { description: 'other' }],
    ['tools', { tools: { allow: [], deny: ['*'], approval: [] } }],
    ['enabled', { enabled: false }],
    ['revision', { revision: 2 }],
  ])('does not change with the %s', (_what, change) => {
    expect(consentText({ ...base, ...change })).toBe(consentText(base));
  });

  test('says that code is unchecked, so an earlier consent does not cover it', () => {
    const unknown = localServer({ command: ['erl', '-eval', 'x'] });
    expect(JSON.parse(consentText(unknown))).toMatchObject({ unchecked: true });
    expect(JSON.parse(consentText(localServer({ env: { JAVA_OPTS: '-javaagent:x' } })))).toMatchObject({
      unchecked: true,
    });
    expect(findUncheckedCode(unknown)).toEqual([expect.stringContaining('runs code that nobody checked')]);
    expect(findUncheckedCode(base)).toEqual([]);
    expect(findUncheckedCode(remoteServer())).toEqual([]);
  });

  test('only a server that starts a program needs consent', () => {
    expect([needsConsent(base), needsConsent(remoteServer())]).toEqual([true, false]);
  });
});
