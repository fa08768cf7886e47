import { describeLocalApi } from './control_api_suite.ts';
import { startOnNode } from './programs.ts';

// Hosted, on Node, Deno and workerd with a libSQL server and a replica: e2e/hosted.
describeLocalApi('Node with the embedded database', () => startOnNode());
