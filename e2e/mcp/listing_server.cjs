// An MCP server without dependencies. It lists the tools of a file, with the instructions beside it if there are any, and answers each call with a word and the tool's name.
const { existsSync, readFileSync } = require('node:fs');

const [toolsFile, word = 'called'] = process.argv.slice(2);
const said = `${toolsFile}.instructions`;
const answers = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities: { tools: {} },
    serverInfo: { name: 'listing', version: '1.0.0' },
    ...(existsSync(said) && { instructions: readFileSync(said, 'utf8') }),
  }),
  'tools/list': () => ({ tools: JSON.parse(readFileSync(toolsFile, 'utf8')) }),
  'tools/call': ({ name }) => ({ content: [{ type: 'text', text: `${word} ${name}` }] }),
};
let input = '';
process.stdin.on('data', (chunk) => {
  input += chunk;
  for (let at = input.indexOf('\n'); at >= 0; at = input.indexOf('\n')) {
    const { id, method, params } = JSON.parse(input.slice(0, at));
    input = input.slice(at + 1);
    if (id === undefined) continue;
    const known = answers[method];
    const reply =
      known === undefined ? { error: { code: -32_601, message: 'no such method' } } : { result: known(params) };
    process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`);
  }
});
