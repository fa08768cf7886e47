import { readFileSync } from 'node:fs';
import { createContext, runInContext } from 'node:vm';
import { afterEach, expect, test, vi } from 'vitest';

const ISLANDS = new URL('../../islands/', import.meta.url);

/** As much of an element as the island asks for. */
class Element {
  readonly dataset = { key: 'key' };
  readonly elements = { namedItem: () => null };
  readonly output = { textContent: '' };
  readonly button = new Button();
  submits = 0;
  readonly #listeners: ((event: object) => void)[] = [];
  querySelector(name: string): unknown {
    return name === 'button' ? this.button : this.output;
  }
  addEventListener(_type: string, listener: (event: object) => void): void {
    this.#listeners.push(listener);
  }
  press(): void {
    for (const listener of this.#listeners) listener({ preventDefault: () => undefined });
  }
  submit(): void {
    this.submits += 1;
  }
}
class Button {
  disabled = true;
}

afterEach(() => {
  vi.unstubAllGlobals();
});

test('the button works each time it is pressed, with one policy', async () => {
  const made: string[] = [];
  const registered: unknown[] = [];
  const pushManager = { getSubscription: async () => null, subscribe: async () => ({ toJSON: () => ({}) }) };
  const trustedTypes = {
    createPolicy(name: string, rules: { readonly createScriptURL: (text: string) => string }) {
      if (made.includes(name)) throw new TypeError('the policy exists');
      made.push(name);
      return { createScriptURL: rules.createScriptURL };
    },
  };
  const register = async (url: unknown) => registered.push(url);
  vi.stubGlobal('window', { trustedTypes, PushManager: true });
  vi.stubGlobal('navigator', { serviceWorker: { register, ready: Promise.resolve({ pushManager }) } });
  vi.stubGlobal('Notification', { requestPermission: async () => 'granted' });
  vi.stubGlobal('HTMLFormElement', Element);
  vi.stubGlobal('HTMLButtonElement', Button);
  vi.stubGlobal('HTMLInputElement', Button);
  const { start }: { start: (form: Element) => void } = await import(new URL('push.js', ISLANDS).href);
  const form = new Element();
  start(form);
  for (const times of [1, 2]) {
    form.press();
    await vi.waitFor(() => expect([form.submits, form.output.textContent]).toEqual([times, '']), { timeout: 60_000 });
  }
  expect([made, registered]).toEqual([['svc-push'], ['/push_worker.js', '/push_worker.js']]);
});

test('a request that waits again rings again, in place of the first', () => {
  const shown: unknown[] = [];
  const listeners = new Map<string, (event: object) => void>();
  const worker = createContext({
    addEventListener: (type: string, listener: (event: object) => void) => listeners.set(type, listener),
    registration: { showNotification: (...what: unknown[]) => shown.push(what) },
    clients: {},
  });
  runInContext(readFileSync(new URL('push_worker.js', ISLANDS), 'utf8'), worker);
  const push = (message: object) =>
    listeners.get('push')?.({ waitUntil: () => undefined, data: { json: () => message } });
  push({ title: 'A request', path: '/approvals/apr_1', tag: 'apr_1' });
  push({ tag: '' });
  expect(JSON.parse(JSON.stringify(shown))).toEqual([
    ['A request', { tag: 'apr_1', renotify: true, data: '/approvals/apr_1' }],
    ['svc has a message', { tag: 'svc', renotify: true, data: '/approvals' }],
  ]);
});
