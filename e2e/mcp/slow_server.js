#!/usr/bin/env node
// An MCP server without dependencies but one: what the package `greeting` says is the name of its tool.
const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const greeting = module.require('greeting');

const [folder = '.'] = process.argv.slice(2);
const { TOKEN = '', LOG_LEVEL = '' } = process.env;
// Holds the start up for as long as the test wants.
while (existsSync(`${folder}/hold`)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
if (existsSync(`${folder}/crash`)) {
  process.stderr.write(`reading ${TOKEN}\n\u001b[2Jno port ${LOG_LEVEL}\n`);
  process.exit(3);
}
writeFileSync(`${folder}/pid`, String(process.pid));

const text = (value) => ({ content: [{ type: 'text', text: value }] });
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'slow', version: '1.0.0' },
  }),
  'tools/list': () => ({
    tools: ['greet', 'wait'].map((name) => ({
      name,
      description: `${greeting} ${readFileSync(`${folder}/says`, 'utf8')}`,
      inputSchema: { type: 'object' },
    })),
  }),
  'tools/call': ({ name }) => {
    if (name !== 'wait') return text(greeting);
    process.stderr.write(`waiting with ${TOKEN}\n`);
    writeFileSync(`${folder}/waiting`, '');
    return null;
  },
};

let input = '';
process.stdin.on('data', (chunk) => {
  input += chunk;
  for (let at = input.indexOf('\n'); at >= 0; at = input.indexOf('\n')) {
    answer(JSON.parse(input.slice(0, at)));
    input = input.slice(at + 1);
  }
});

function answer({ id, method, params }) {
  if (id === undefined) return;
  const known = answers[method];
  const result = known?.(params);
  if (result === null) return;
  const reply = known === undefined ? { error: { code: -32601, message: 'no such method' } } : { result };
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`);
}
