// The program that the suite starts for each scenario: it lets the test play the scenario, and says whether that worked.
const [runner, serverUrl] = process.argv.slice(2);
const { MCP_CONFORMANCE_SCENARIO: scenario, MCP_CONFORMANCE_CONTEXT: context = '{}' } = process.env;
const reply = await fetch(runner, {
  method: 'POST',
  body: JSON.stringify({ scenario, serverUrl, context: JSON.parse(context) }),
});
process.stderr.write(await reply.text());
process.exit(reply.ok ? 0 : 1);
