import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CONTRACT_VERSION, HELPERS, MCP_HELPER } from '../contract/image_contract_probe.ts';
import { CA_VARIABLES } from '../launch/session_environment.ts';

const fileOf = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const read = (name: string): string => readFileSync(fileOf(name), 'utf8');
const PARTS = ['guard.sh', 'agent_user.sh', 'client_trust.sh'];
const SCRIPTS = [...HELPERS, MCP_HELPER, ...PARTS, 'prepare_image.sh'];

/** `home/` prepares the home of an agent, and is given to a container when it starts. */
function isOfTheBuild(name: string): boolean {
  return name === 'Dockerfile' || name === 'home' || name.startsWith('.') || name.endsWith('.test.ts');
}

describe('the programs of an image', () => {
  test.each(SCRIPTS)('%s is a valid sh script', (name) => {
    expect(execFileSync('/bin/sh', ['-n', fileOf(name)], { encoding: 'utf8' })).toBe('');
  });

  test.each([...HELPERS, MCP_HELPER])('%s is executable and begins with /bin/sh', (name) => {
    expect(statSync(fileOf(name)).mode & 0o111).toBe(0o111);
    expect(read(name)).toMatch(/^#!\/bin\/sh\n/);
  });

  test.each(SCRIPTS)('%s uses no bash-only syntax', (name) => {
    const code = read(name).replaceAll(/^\s*#.*$/gm, '');
    expect(code).not.toMatch(/\[\[|^\s*(local|declare|function|source) |<\(|<<<|\$'|&>|\becho -[ne]|==/m);
  });

  test('set the same CA variables as svc run', () => {
    const [, list = ''] = /^ca_variables='\n([^']*)'/m.exec(read('client_trust.sh')) ?? [];
    expect(list.trim().split('\n')).toEqual([...CA_VARIABLES]);
  });

  test('have the contract version that the launcher needs', () => {
    expect(read('image-contract')).toBe(`${CONTRACT_VERSION}\n`);
  });

  test('are exactly the files in the Dockerfile', () => {
    const copied = [...read('Dockerfile').matchAll(/^COPY (.*) \S+$/gm)].flatMap(([, names = '']) => names.split(' '));
    const files = readdirSync(fileOf('.')).filter((name) => !isOfTheBuild(name));
    expect(copied.toSorted()).toEqual(files.toSorted());
  });

  test('match the document', () => {
    const contract = readFileSync(fileOf('../../docs/image-contract.md'), 'utf8');
    for (const name of [...HELPERS, ...PARTS, 'image-contract']) expect(contract).toContain(name);
    const documented = new Set([...contract.matchAll(/^\| (\d+)(?:, \d+)?\s+\|/gm)].map(([, code]) => code));
    const used = SCRIPTS.flatMap((name) =>
      [...read(name).matchAll(/\b(?:refuse|exit) (1\d|2\d|7\d)\b/g)].map(([, code]) => code),
    );
    expect(used.length).toBeGreaterThan(10);
    expect([...new Set(used)].filter((code) => !documented.has(code))).toEqual([]);
  });
});
