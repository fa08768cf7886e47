/**
 * How the registry proved a namespace: the owner of a domain under `.com`, of another domain, or of an account at a host of
 * code.
 */
export type PublisherProof = 'com' | 'domain' | 'account';

/** Who publishes an entry, as far as its namespace proves. */
export interface Publisher {
  /** The part of the name before the slash. */
  readonly namespace: string;
  /** The one word that is proven, such as `stripe` of `com.stripe`, in small letters; null if there is none. */
  readonly label: string | null;
  readonly proof: PublisherProof | null;
}

/** Hosts below which anybody gets a name, as a namespace: there the next label is an account, and not the host's own. */
const SHARED_HOSTS: ReadonlySet<string> = new Set([
  'io.github',
  'io.gitlab',
  'page.gitlab',
  'app.vercel',
  'sh.now',
  'app.netlify',
  'app.railway',
  'com.onrender',
  'app.render',
  'dev.fly',
  'dev.deno',
  'net.deno',
  'dev.pages',
  'dev.workers',
  'app.web',
  'com.firebaseapp',
  'app.run',
  'com.herokuapp',
  'net.azurewebsites',
  'app.replit',
  'dev.replit',
  'co.repl',
  'space.hf',
  'co.supabase',
  'site.notion',
  'io.webflow',
  'com.wixsite',
  'com.wordpress',
  'com.blogspot',
  'io.gitbook',
  'com.myshopify',
  'me.glitch',
  'sh.surge',
  'website.framer',
  'app.framer',
  'co.carrd',
  'ai.alpic',
  'live.alpic',
  'app.ngrok-free',
  'dev.ngrok',
  'io.ngrok',
  'com.amazonaws',
  'net.cloudfront',
  'app.streamlit',
  'dev.lovable',
  'app.lovable',
  'run.val',
  'cc.workers',
]);
/** Labels below a country's top-level domain under which anybody registers. */
const REGISTRIES_BELOW: ReadonlySet<string> = new Set([
  'com',
  'co',
  'org',
  'net',
  'gov',
  'edu',
  'ac',
  'or',
  'ne',
  'gob',
]);
/** Names of a service of the domain itself. */
const SERVICES: ReadonlySet<string> = new Set(['mcp', 'www', 'api', 'app', 'registry', 'server', 'servers', 'docs']);
/** No other letters: some become these once they are folded, and would imitate a name. */
const PLAIN_LABEL = /^[A-Za-z0-9-]+$/;

/**
 * Reads who publishes an entry from its name, such as `com.stripe/mcp` or `io.github.acme/weather`. The registry proves the
 * whole namespace, so a deeper subdomain, which may be a customer's, proves no label.
 */
export function publisherOf(name: string): Publisher {
  const namespace = name.slice(0, Math.max(0, name.lastIndexOf('/')));
  const labels = namespace.split('.');
  if (!labels.every((label) => PLAIN_LABEL.test(label))) return { namespace, label: null, proof: null };
  return { namespace, ...provenLabel(labels.map((label) => label.toLowerCase())) };
}

const NOTHING = { label: null, proof: null };

function provenLabel(labels: readonly string[]): Pick<Publisher, 'label' | 'proof'> {
  const [top = '', second = '', third] = labels;
  if (SHARED_HOSTS.has(`${top}.${second}`)) {
    return third !== undefined && labels.length === 3 ? { label: third, proof: 'account' } : NOTHING;
  }
  const isBelow = top.length === 2 && REGISTRIES_BELOW.has(second);
  const label = isBelow ? third : second;
  const rest = labels.slice(isBelow ? 3 : 2);
  const isOwn = rest.length === 0 || (rest.length === 1 && SERVICES.has(rest[0] ?? ''));
  if (label === undefined || label === '' || !isOwn) return NOTHING;
  return { label, proof: top === 'com' ? 'com' : 'domain' };
}
