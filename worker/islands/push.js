// A button by which the person has this browser told of requests, also while no page of svc is open.

const WORKER = '/push_worker.js';
/** The only URL of a script that this page may name, by the policy that its headers allow. They allow to make it once. */
const policy = Reflect.get(window, 'trustedTypes')?.createPolicy('svc-push', { createScriptURL: () => WORKER });

/** @param {HTMLElement} form with an output and the fields of a subscription; `data-key` is the key of the control plane. */
export function start(form) {
  const button = form.querySelector('button');
  if (!(form instanceof HTMLFormElement) || !(button instanceof HTMLButtonElement)) return;
  if (!('serviceWorker' in navigator) || !('PushManager' in window))
    return say(form, 'This browser has no notifications.');
  button.disabled = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void subscribe(form);
  });
}

/** @param {HTMLFormElement} form */
async function subscribe(form) {
  if ((await Notification.requestPermission()) !== 'granted') {
    return say(form, 'The browser does not allow it: allow notifications of this site in its settings.');
  }
  try {
    const { endpoint = '', keys = {} } = await ask(form.dataset['key'] ?? '');
    for (const [name, value] of Object.entries({ ...keys, endpoint })) {
      const field = form.elements.namedItem(name);
      if (field instanceof HTMLInputElement) field.value = value;
    }
    form.submit();
  } catch (error) {
    say(form, `The browser could not be reached by its push service: ${String(error)}`);
  }
}

/**
 * @param {string} key
 * @returns {Promise<PushSubscriptionJSON>}
 */
async function ask(key) {
  await navigator.serviceWorker.register(policy?.createScriptURL('') ?? WORKER);
  const { pushManager } = await navigator.serviceWorker.ready;
  // One that was made with another key cannot be used any more.
  const earlier = await pushManager.getSubscription();
  if (earlier !== null) await earlier.unsubscribe();
  return (await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: key })).toJSON();
}

/**
 * @param {HTMLElement} form
 * @param {string} text
 */
function say(form, text) {
  const output = form.querySelector('output');
  if (output !== null) output.textContent = text;
}
