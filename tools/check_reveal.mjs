// Pins the files that may take a credential out of its `Secret`: only to write it onto a request, to seal it, or to mask it
// in a reply. An unlisted file that reveals fails the check, and so does a listed file that no longer does. Run by `npm
// test`; alone: `node tools/check_reveal.mjs`.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Each file that may reveal, with the reason. */
export const MAY_REVEAL = {
  'shared/inject/inject.ts': 'writes the credential onto a request',
  'shared/inject/scrub/scrub_secrets.ts': 'makes the patterns that mask it in a reply',
  'shared/net/upstream_proxy.ts': 'writes the credentials of the upstream proxy onto a CONNECT request to it',
  'cli/agents/account_login.ts': "stores the tokens of an agent's own login in the control plane",
  'gateway/servers/fill_launch.ts':
    'puts credentials into the environment, arguments and headers of an MCP server, and masks them',
  'cli/certificates/cert_commands.ts': 'stores the key of a client certificate in the control plane',
  'sidecar/exchange/material.ts': 'reads the certificate and the key of a stored client certificate',
  'sidecar/upstream/dialer.ts': 'gives the key of a client certificate to the TLS library, to dial its host',
  'sidecar/exchange/exchange_account.ts': 'asks a provider whose a new token is, with that token',
  'sidecar/control/seal_login_tokens.ts': 'seals the tokens of a login to the control plane',
  'sidecar/local_api/launch_routes.ts': 'releases a credential that a container gets unsealed, which is recorded',
  'sidecar/local_api/mcp_release.ts':
    'releases to the local gateway the values with which it starts an MCP server that was consented to here',
  'worker/entries/node_database.ts': 'hands the database token to the libSQL client',
  'worker/entries/workerd.ts': 'hands the database token to the libSQL client',
  'worker/services/connectors/connector_call.ts':
    "writes the credential onto a connector's request and masks it in the reply",
  'worker/kernel/control_key.ts': 'imports the signing key of the control plane, opened from the vault',
  'worker/services/sidecars/credential_release.ts': 'seals the credential to one sidecar',
  'worker/services/connectors/pending_logins.ts': 'imports the key of a login that waits, and stores its tokens',
  'worker/services/oauth/oauth_bundle.ts': "puts an oauth2 credential's secrets into the one text that the vault seals",
  'worker/services/oauth/oauth_flow.ts':
    'puts the verifier or device code of an authorisation into the text that the vault seals',
  'worker/services/oauth/oauth_grants.ts':
    'sends client secret, code verifier and refresh token to the token endpoint that they were given for',
  'worker/installation/local_home.ts': 'tells which of two master keys the file contains',
  'worker/entries/os_keyring.ts': 'gives the keyring the key that seals the file of the master key',
  'worker/entries/protected_key.ts':
    'seals the file of the master key with a passphrase, a key of the keyring or one that a KMS wraps',
  'worker/entries/kms/aws_kms.ts': 'sends the key of a file of the master key to the KMS that wraps it',
  'worker/entries/kms/google_kms.ts':
    'sends the key of a file of the master key to the KMS that wraps it, with the token for that KMS',
  'worker/entries/vault_key_files.ts': 'writes a new master key into the file of the local one',
  'worker/installation/start.ts': 'hashes the local sign-in key, to know it again',
  'worker/services/sinks/sink_target.ts': 'reads the URL and the signing secret of a sink, opened from the vault',
  'worker/services/mcp/served/open_server.ts':
    "writes a remote server's credentials onto its requests, and masks them in what it says",
  'worker/services/sources/aws_key_check.ts': 'tells whether the key of a source has the form of a secret access key',
  'worker/services/sources/google_impersonation.ts': 'sends the token of an account to the API that it was issued for',
  'worker/services/sources/grant_client.ts': 'takes the key of a source apart, if it has several parts',
  'worker/services/sources/minted_value.ts':
    'tells the row of a source, which has no value, from that of a stored secret',
  'worker/services/sources/sealed_value.ts': 'puts a key set into the one text that the vault seals',
  'worker/services/sources/sign_jwt.ts': 'imports the private key of a source, opened from the vault',
  'worker/services/sources/kinds/aws_web_identity.ts':
    'sends the identity that it signed to the service that exchanges it',
  'worker/services/sources/kinds/github_app.ts': 'sends the assertion of an app to the API that it was signed for',
  'worker/services/sources/vault_calls.ts':
    "sends a source's token, or what a login needs, to the Vault that it was given for",
  'worker/services/sources/kept_value.ts': 'tells whether the token of a source has the form of one',
  'worker/services/sources/kinds/google_secret_manager.ts': 'sends the token of a service account to the API it is for',
  'worker/services/sources/kinds/onepassword_connect.ts': 'sends the token of a source to the server it was given for',
  'worker/services/sources/kinds/doppler.ts': 'sends the token of a source to the API that it was given for',
  'worker/services/sources/kinds/infisical.ts':
    'sends the client secret of a source, and the token of its login, to the server that it was given for',
  'worker/services/vault/secrets.ts': 'refuses to store the placeholder of a binding as a credential',
  'worker/services/vault/moves/receive_moved.ts': 'imports the key of a move, opened from its ticket',
  'worker/services/vault/moves/seal_moved.ts': 'seals a value to the other vault of the same person',
  'worker/services/vault/moves/value_digest.ts': 'makes the digests by which two vaults compare a value',
  'worker/services/people/passwords.ts': 'hashes a password',
  'worker/services/push/push_key.ts': 'imports the key that signs for push services, opened from the vault',
  'worker/services/push/push_subscriptions.ts':
    'reads the endpoint and the keys of a browser, opened from the vault, to send it a message',
  'worker/kernel/mail.ts': 'authenticates to the service that sends mail',
  'worker/sign_in/oidc.ts': "authenticates our client at a provider's token endpoint",
  'worker/sign_in/provider_client.ts': 'reads the URLs and client ids among the variables of a provider',
  'worker/sign_in/providers/codehost.ts': "authenticates our client at the code host's token endpoint",
  'worker/sign_in/providers/general.ts': 'reads the issuer among its variables',
  'worker/tokens/access_keys.ts': 'imports the key of the access tokens, opened from the vault',
  'worker/kernel/vault.ts': 'imports the master key, and encrypts a secret at rest',
};

const FOLDERS = ['shared', 'machine', 'sandbox', 'gateway', 'sidecar', 'cli', 'worker', 'catalog'];
const DEFINITION = 'shared/model/secret.ts';
const COMMENT = /\/\*[^]*?\*\/|(^|[^:'"`])\/\/[^\n]*/g;
// Any mention of the method's name counts, also without a call, so that it cannot be passed on under another name.
const REVEALS = /[.]\s*reveal\b|\[\s*['"`]reveal['"`]\s*\]|[{,]\s*reveal\s*[,:}]/;

/** True if the source text accesses a secret's value, outside comments. */
export function reveals(source) {
  return REVEALS.test(source.replace(COMMENT, '$1'));
}

/** The problems, one sentence each: `files` maps a path to its text, `allowed` a path to its reason. */
export function revealProblems(files, allowed) {
  const revealing = Object.keys(files).filter((path) => path !== DEFINITION && reveals(files[path]));
  return [
    ...revealing
      .filter((path) => allowed[path] === undefined)
      .map((path) => `${path} reveals a Secret and is not in MAY_REVEAL (tools/check_reveal.mjs)`),
    ...Object.keys(allowed)
      .filter((path) => !revealing.includes(path))
      .map((path) => `${path} is in MAY_REVEAL (tools/check_reveal.mjs) but reveals nothing: remove it`),
  ];
}

function sources(root) {
  const files = {};
  for (const folder of FOLDERS.filter((name) => existsSync(join(root, name)))) {
    for (const entry of readdirSync(join(root, folder), { recursive: true, withFileTypes: true })) {
      if (!entry.isFile() || !/[.](ts|tsx|js|mjs)$/.test(entry.name) || /[.]test[.]ts$/.test(entry.name)) continue;
      const path = join(entry.parentPath, entry.name);
      files[relative(root, path)] = readFileSync(path, 'utf8');
    }
  }
  return files;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const problems = revealProblems(sources(fileURLToPath(new URL('..', import.meta.url))), MAY_REVEAL);
  for (const problem of problems) process.stderr.write(`${problem}\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
