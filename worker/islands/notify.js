// A button by which the person lets svc show notifications while one of its pages is open.

/** @param {HTMLElement} element */
export function start(element) {
  if (typeof Notification === 'undefined' || Notification.permission !== 'default') return;
  const button = document.createElement('button');
  button.type = 'button';
  button.className = 'compact';
  button.textContent = 'Notify me of new requests';
  button.addEventListener('click', () => void ask(button));
  element.append(button);
}

/** @param {HTMLElement} button */
async function ask(button) {
  const answer = await Notification.requestPermission();
  button.replaceWith(answer === 'granted' ? 'You are notified while a page of svc is open.' : '');
}
