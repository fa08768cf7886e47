#!/bin/sh
# The program that the suite starts for each scenario: it lets the test play the scenario, and says whether that worked. A shell and
# curl, because the suite starts all at once: so many Nodes would keep it from answering for longer than a client waits.
exec curl -sS --fail-with-body -H "svc-scenario: $MCP_CONFORMANCE_SCENARIO" -H "svc-server: $2" \
  --data-binary "${MCP_CONFORMANCE_CONTEXT:-{\}}" "$1" >&2
