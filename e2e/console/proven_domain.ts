import { createServer } from 'node:http';
import { listen } from '../support/tls_upstream.ts';

/** The web site of a domain, which holds one file: the one by which an enterprise proves that the domain is its own. */
export interface ProvenDomain {
  readonly loopback: string;
  /** What the file says. */
  proof: string;
  stop(): Promise<void>;
}

export async function startProvenDomain(): Promise<ProvenDomain> {
  const server = createServer((request, response) => {
    const isThere = request.url === '/.well-known/svc-enterprise.txt';
    response.writeHead(isThere ? 200 : 404, { 'content-type': 'text/plain' }).end(isThere ? domain.proof : '');
  });
  const domain: ProvenDomain = {
    loopback: `http://127.0.0.1:${await listen(server)}`,
    proof: '',
    async stop() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return domain;
}
