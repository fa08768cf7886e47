// Shows a request that waits: the sidecar that holds it seals it to a key of this page, and the control plane passes it on unread.

const CURVE = { name: 'ECDH', namedCurve: 'P-256' };
const LOOK_MS = 500;
const MOST_LOOKS = 30;
const SHOWN_BYTES = 65_536;

/** @typedef {{ approval_id: string, fingerprint: string, line: string, content_type: string, text: string | null, bytes: number }} Shown */

/** @param {HTMLElement} element has `data-approval` and `data-fingerprint`, a button, and a part for the request; hidden without scripts */
export function start(element) {
  const button = element.querySelector('button');
  const place = element.querySelector('[data-shown]');
  // Browsers have it on secure pages only.
  if (button === null || place === null || crypto.subtle === undefined) return;
  element.hidden = false;
  button.addEventListener('click', () => {
    // A disabled button would lose the focus, and with it the keys of its card.
    if (button.getAttribute('aria-disabled') === 'true') return;
    button.setAttribute('aria-disabled', 'true');
    place.textContent = 'Asking the machine…';
    void load(element.dataset).then(
      (shown) => place.replaceChildren(...partsOf(shown)),
      (/** @type {unknown} */ error) => {
        place.textContent = error instanceof Error ? error.message : String(error);
        button.removeAttribute('aria-disabled');
      },
    );
  });
}

/**
 * @param {DOMStringMap} about
 * @returns {Promise<Shown>}
 */
async function load({ approval = '', fingerprint }) {
  const pair = await crypto.subtle.generateKey(CURVE, false, ['deriveBits']);
  const { kty, crv, x, y } = await crypto.subtle.exportKey('jwk', pair.publicKey);
  const views = `/v1/approvals/${approval}/views`;
  const { id } = await call(views, { method: 'POST', body: JSON.stringify({ key: { kty, crv, x, y } }) });
  const shown = await open(await answer(`${views}/${id}`), pair.privateKey);
  if (shown.approval_id !== approval || shown.fingerprint !== fingerprint) throw new Error('That is another request.');
  return shown;
}

/**
 * @param {string} view
 * @returns {Promise<string>}
 */
async function answer(view) {
  for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
    const { sealed } = await call(view);
    if (sealed !== null) return sealed;
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  throw new Error('The machine did not show it. Its svc may be older, or its agent no longer waits.');
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function call(path, init) {
  const reply = await fetch(path, { ...init, headers: { 'content-type': 'application/json' } });
  const body = await reply.json();
  if (!reply.ok) throw new Error(reply.status === 409 ? 'Its agent no longer waits.' : body.error.message);
  return body;
}

/**
 * Opens a compact JWE: ECDH-ES with the key derivation of RFC 7518 section 4.6.2, and A256GCM.
 * @param {string} sealed
 * @param {CryptoKey} privateKey
 * @returns {Promise<Shown>}
 */
async function open(sealed, privateKey) {
  const [header = '', , iv = '', text = '', tag = ''] = sealed.split('.');
  const { epk } = JSON.parse(new TextDecoder().decode(decode(header)));
  const theirs = await crypto.subtle.importKey('jwk', epk, CURVE, false, []);
  const secret = await crypto.subtle.deriveBits({ name: 'ECDH', public: theirs }, privateKey, 256);
  const name = new TextEncoder().encode('A256GCM');
  const parts = [number(1), secret, number(name.length), name, number(0), number(0), number(256)];
  const bits = await crypto.subtle.digest('SHA-256', await new Blob(parts).arrayBuffer());
  const key = await crypto.subtle.importKey('raw', bits, 'AES-GCM', false, ['decrypt']);
  const how = { name: 'AES-GCM', iv: decode(iv), additionalData: new TextEncoder().encode(header) };
  const whole = await new Blob([decode(text), decode(tag)]).arrayBuffer();
  return JSON.parse(new TextDecoder().decode(await crypto.subtle.decrypt(how, key, whole)));
}

/** @param {number} value */
function number(value) {
  return new Uint8Array([0, 0, value >> 8, value & 255]);
}

/** @param {string} base64url */
function decode(base64url) {
  const binary = atob(base64url.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

/**
 * @param {Shown} shown
 * @returns {HTMLElement[]}
 */
function partsOf({ line, content_type: type, text, bytes }) {
  const about = [bytes === 0 ? 'no body' : `${bytes} bytes${type === '' ? '' : `, ${type}`}`];
  if (text === null) about.push('not text');
  else if (bytes > SHOWN_BYTES) about.push('the first 64 KiB');
  about.push('as sent, with the credential masked');
  const parts = [part('p', 'mono asked', line), part('p', 'quiet small', about.join('; '))];
  if (text !== null && text !== '') {
    const body = part('pre', 'body', text);
    body.tabIndex = 0;
    body.setAttribute('role', 'region');
    body.setAttribute('aria-label', 'Body of the request');
    parts.push(body);
  }
  return parts;
}

/**
 * @param {string} tag
 * @param {string} kind
 * @param {string} text
 */
function part(tag, kind, text) {
  const element = document.createElement(tag);
  element.className = kind;
  element.textContent = text;
  return element;
}
